"""Witness files: snarkjs' own, and everything that is none."""

from __future__ import annotations

import pytest

from partita.circuits.wtns import read_wtns, statement_of_wtns, write_wtns, wtns_size_bytes
from partita.groth16.curves import curve_named
from partita.groth16.errors import FormatError, MismatchError
from tests.circuits.circuit_vectors import (
    ALL,
    CircuitVector,
    edge,
    patched,
    sections_of,
    with_sections,
)

WITNESS = edge("one-constraint").read("witness.wtns")
VALUES_AT = len(WITNESS) - 4 * 32


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_witness_of_snarkjs_is_read_and_written_to_the_same_bytes(vector: CircuitVector) -> None:
    data = vector.read("witness.wtns")
    witness = read_wtns("w", data)
    assert witness.curve == vector.facts["curve"]
    assert witness.n_wires == vector.facts["wires"]
    assert write_wtns(witness) == data
    assert wtns_size_bytes(witness.n_wires) == len(data)


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_the_head_of_a_witness_gives_the_statement(vector: CircuitVector) -> None:
    data = vector.read("witness.wtns")
    n_public = vector.facts["n_public"]
    statement = statement_of_wtns(
        "w", data, curve=vector.facts["curve"], n_wires=vector.facts["wires"], n_public=n_public
    )
    assert statement == read_wtns("w", data).statement(n_public)
    assert len(statement) == 32 * n_public


def test_the_statement_is_read_without_the_rest_of_the_values() -> None:
    """A private value that is no field element is the prover's to refuse, not the scheduler's."""
    r = curve_named("bn254").r
    bad = patched(WITNESS, len(WITNESS) - 32, r.to_bytes(32, "little"))
    stated = statement_of_wtns("w", bad, curve="bn254", n_wires=4, n_public=1)
    assert stated == read_wtns("w", WITNESS).statement(1)
    with pytest.raises(FormatError, match="wire 3 is not below the modulus"):
        read_wtns("w", bad)


def test_the_statement_of_another_circuit_is_refused() -> None:
    with pytest.raises(MismatchError, match="curve differs: expected bls12-381, found bn254"):
        statement_of_wtns("w", WITNESS, curve="bls12-381", n_wires=4, n_public=1)
    with pytest.raises(MismatchError, match="number of wires differs: expected 5, found 4"):
        statement_of_wtns("w", WITNESS, curve="bn254", n_wires=5, n_public=1)


@pytest.mark.parametrize("wire", [1, 2, 3])
def test_a_value_not_below_the_modulus_is_named(wire: int) -> None:
    at = VALUES_AT + 32 * wire
    for value in (curve_named("bn254").r, (1 << 256) - 1):
        with pytest.raises(FormatError, match=f"wire {wire} is not below") as caught:
            read_wtns("w", patched(WITNESS, at, value.to_bytes(32, "little")))
        assert caught.value.offset == at


def test_a_public_value_not_below_the_modulus_is_refused_in_the_statement() -> None:
    bad = patched(WITNESS, VALUES_AT + 32, b"\xff" * 32)
    with pytest.raises(FormatError, match="wire 1 is not below"):
        statement_of_wtns("w", bad, curve="bn254", n_wires=4, n_public=1)


def test_wire_0_must_be_one() -> None:
    with pytest.raises(FormatError, match="wire 0 is 2; it must be 1"):
        read_wtns("w", patched(WITNESS, VALUES_AT, b"\x02"))


def test_a_count_that_lies_is_refused_without_allocating() -> None:
    header = sections_of(WITNESS)[1]
    for count in (0, 3, 5, (1 << 32) - 1):
        lying = with_sections(WITNESS, {1: header[:-4] + count.to_bytes(4, "little")})
        with pytest.raises(FormatError):
            read_wtns("w", lying)


def test_a_witness_over_another_prime_is_refused_by_name() -> None:
    size = (8).to_bytes(4, "little")
    goldilocks = size + 0xFFFFFFFF00000001.to_bytes(8, "little") + (4).to_bytes(4, "little")
    with pytest.raises(FormatError, match="the prime is Goldilocks"):
        read_wtns("w", with_sections(WITNESS, {1: goldilocks}))
    header = sections_of(WITNESS)[1]
    with pytest.raises(FormatError, match="it must be BN254's"):
        read_wtns("w", with_sections(WITNESS, {1: patched(header, 4, b"\x05")}))
    with pytest.raises(FormatError, match="claims 33 bytes"):
        read_wtns("w", with_sections(WITNESS, {1: patched(header, 0, b"\x21")}))
