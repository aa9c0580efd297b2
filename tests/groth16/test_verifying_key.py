"""The binary form of verifying keys."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.encodings import write_uncompressed
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.keys import KeyFamily
from partita.groth16.verifying_key import VerifyingKey
from tests.groth16.test_curves import off_subgroup
from tests.groth16.tiny_setup import product_circuit, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


def key_of(curve: Curve) -> VerifyingKey:
    return VerifyingKey.of_proving_key(set_up(product_circuit(), curve.name, KeyFamily.SNARKJS))


@CURVE
def test_a_verifying_key_round_trips_and_has_the_digest_of_its_bytes(curve: Curve) -> None:
    key = key_of(curve)
    data = key.to_bytes()
    g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
    assert len(data) == g1 + 3 * g2 + 4 + 2 * g1
    assert data[g1 + 3 * g2 :][:4] == b"\2\0\0\0"
    assert key.n_public == 1
    assert VerifyingKey.from_bytes(curve.name, data) == key
    assert key.sha256() == hashlib.sha256(data).digest()


@CURVE
def test_infinity_is_allowed_in_ic_alone(curve: Curve) -> None:
    key = dataclasses.replace(key_of(curve), ic=(None, *key_of(curve).ic[1:]))
    data = key.to_bytes()
    assert VerifyingKey.from_bytes(curve.name, data) == key
    infinity = write_uncompressed(curve, curve.g2, None)
    start = curve.g1.point_size_bytes + curve.g2.point_size_bytes
    broken = data[:start] + infinity + data[start + len(infinity) :]
    with pytest.raises(EncodingError, match="gamma_g2: the point at infinity"):
        VerifyingKey.from_bytes(curve.name, broken)


@CURVE
def test_truncated_and_extended_keys_are_refused(curve: Curve) -> None:
    data = key_of(curve).to_bytes()
    for wrong in (b"", data[:100], data[:-1], data + b"\0"):
        with pytest.raises(FormatError, match=f"verifying key: {len(wrong)} bytes, expected"):
            VerifyingKey.from_bytes(curve.name, wrong)
    head = curve.g1.point_size_bytes + 3 * curve.g2.point_size_bytes
    with pytest.raises(FormatError, match="no IC point"):
        VerifyingKey.from_bytes(curve.name, data[:head] + bytes(4))


@CURVE
def test_a_malformed_point_is_named(curve: Curve) -> None:
    data = key_of(curve).to_bytes()
    with pytest.raises(EncodingError, match=r"verifying key ic\[1\]: .*off the curve"):
        VerifyingKey.from_bytes(curve.name, data[:-1] + bytes([data[-1] ^ 1]))
    g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
    bad = write_uncompressed(curve, curve.g2, off_subgroup(curve.g2))
    wrong = data[:g1] + bad + data[g1 + g2 :]
    with pytest.raises(EncodingError, match=r"beta_g2: .*subgroup"):
        VerifyingKey.from_bytes(curve.name, wrong)
    assert VerifyingKey.from_bytes(curve.name, wrong, check_subgroups=False).n_public == 1
