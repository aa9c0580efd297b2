"""The mark of development keys: found where it stands, and nowhere else."""

from __future__ import annotations

import pytest

from partita.circuits.development import DEVELOPMENT_MARK, is_development_key
from partita.groth16.curves import BLS12_381
from partita.groth16.errors import FormatError
from tests.circuits.circuit_vectors import edge, sections_of, with_sections

ZKEY = edge("one-constraint").read("circuit.zkey")


def test_a_zkey_is_marked_where_its_contributions_begin_also_after_more_contributions() -> None:
    contributions = sections_of(ZKEY)[10]
    assert not is_development_key("zkey", "k", ZKEY)
    marked = DEVELOPMENT_MARK + contributions[64:]
    assert is_development_key("zkey", "k", with_sections(ZKEY, {10: marked}))
    assert is_development_key("zkey", "k", with_sections(ZKEY, {10: marked + b"another"}))
    elsewhere = contributions + DEVELOPMENT_MARK
    assert not is_development_key("zkey", "k", with_sections(ZKEY, {10: elsewhere}))


def test_a_zkey_that_cannot_be_read_is_an_error_and_not_unmarked() -> None:
    with pytest.raises(FormatError, match=r"^k, section 10"):
        is_development_key("zkey", "k", ZKEY[:-1])


def test_a_params_file_is_marked_at_its_end_only() -> None:
    data = bytes(range(200))
    assert is_development_key("params", "p", data + DEVELOPMENT_MARK)
    assert is_development_key("params", "p", memoryview(data + DEVELOPMENT_MARK))
    for other in (b"", data, data + DEVELOPMENT_MARK[:-1], data + DEVELOPMENT_MARK + b"."):
        assert not is_development_key("params", "p", other)


def test_no_params_file_of_a_ceremony_ends_like_the_mark() -> None:
    """Its last 48 bytes are a coordinate, big-endian."""
    assert int.from_bytes(DEVELOPMENT_MARK[-48:], "big") >= BLS12_381.fq.modulus
