"""Statements: values to bytes and back, strictly."""

from __future__ import annotations

import hashlib

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.errors import EncodingError, MismatchError
from partita.groth16.statement import decode_statement, encode_statement, require_statement

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@CURVE
def test_a_statement_round_trips(curve: Curve) -> None:
    values = [0, 1, curve.r - 1, 1 << 128]
    data = encode_statement(curve, values)
    assert len(data) == 128
    assert data[32:34] == b"\1\0"
    assert decode_statement(curve, data, 4) == values
    assert encode_statement(curve, []) == b""
    assert decode_statement(curve, b"", 0) == []


@CURVE
def test_a_value_outside_the_field_is_named_by_its_index(curve: Curve) -> None:
    for value in (-1, curve.r, 1 << 300):
        with pytest.raises(EncodingError, match=r"statement\[2\]"):
            encode_statement(curve, [1, 2, value])
    data = encode_statement(curve, [5]) + curve.r.to_bytes(32, "little")
    with pytest.raises(EncodingError, match=r"statement\[1\]: .*not below r"):
        decode_statement(curve, data, 2)


@CURVE
def test_a_statement_of_another_length_says_what_was_expected(curve: Curve) -> None:
    data = encode_statement(curve, [1, 2])
    for wrong in (data[:-1], data + b"\0", b"", data[:32]):
        with pytest.raises(
            MismatchError, match=rf"64 bytes \(2 public inputs\), found {len(wrong)} bytes"
        ):
            decode_statement(curve, wrong, 2)


def test_another_statement_than_the_one_asked_for_is_refused() -> None:
    asked = hashlib.sha256(bytes(32)).digest()
    require_statement(bytes(32), asked)
    with pytest.raises(MismatchError, match=f"statement .*expected {asked.hex()}"):
        require_statement(b"\1" + bytes(31), asked)
