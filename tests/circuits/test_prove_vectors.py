"""From snarkjs' files to proofs: ours verify under their keys, and theirs in our verifier."""

from __future__ import annotations

import dataclasses

import pytest

from partita.circuits.container import map_file
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.snarkjs_json import (
    read_proof_json,
    read_public_json,
    read_verifying_key_json,
    write_proof_json,
)
from partita.circuits.wtns import read_wtns
from partita.circuits.zkey import read_zkey
from partita.groth16.errors import EncodingError, MismatchError
from partita.groth16.native import NativeBackend
from partita.groth16.prover import _prove_with, prove
from partita.groth16.reference import ReferenceBackend
from partita.groth16.verifier import Verifier
from partita.groth16.witness import Witness
from tests.circuits.circuit_vectors import ALL, SMALL, CircuitVector, edge

BACKEND = NativeBackend()
UNSATISFIED = [vector for vector in SMALL if (vector.path / "unsatisfied.wtns").exists()]

both_curves = pytest.mark.parametrize("curve", ["bn254", "bls12-381"])


def proof_of(vector: CircuitVector, witness: Witness, *, check: bool = False) -> bytes:
    key = BACKEND.load(read_zkey("k", map_file(vector.path / "circuit.zkey")), check=check)
    return prove(BACKEND, key, witness).to_bytes()


def witness_of(vector: CircuitVector, name: str = "witness.wtns") -> Witness:
    return read_wtns(name, map_file(vector.path / name))


def verifier_of(vector: CircuitVector) -> Verifier:
    text = vector.text("verification_key.json")
    return Verifier(read_verifying_key_json("vk", text, check_subgroups=False))


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_proof_under_a_key_of_snarkjs_verifies_for_its_public_inputs(
    vector: CircuitVector,
) -> None:
    curve, n_public = vector.facts["curve"], vector.facts["n_public"]
    statement = read_public_json("p", vector.text("public.json"), curve_name=curve)
    proof = proof_of(vector, witness_of(vector), check=not vector.is_example)
    verifier = verifier_of(vector)
    assert verifier.verify(statement, proof)
    if n_public:
        other = statement[:-32] + (987654321).to_bytes(32, "little")
        assert other != statement
        assert not verifier.verify(other, proof)


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_proof_of_snarkjs_verifies_here(vector: CircuitVector) -> None:
    curve = vector.facts["curve"]
    statement = read_public_json("p", vector.text("public.json"), curve_name=curve)
    theirs = read_proof_json("proof.json", vector.text("proof.json"))
    ours = proof_of(vector, witness_of(vector))
    verdicts = verifier_of(vector).verify_batch([(statement, theirs.to_bytes()), (statement, ours)])
    assert [verdict.valid for verdict in verdicts] == [True, True]


@both_curves
@pytest.mark.parametrize("name", ["one-constraint", "no-public", "linear-only", "empty-rows"])
def test_reference_and_native_give_the_same_bytes_under_the_same_randomness(
    name: str, curve: str
) -> None:
    """Among these are keys whose B queries are all infinity, and one without public inputs."""
    vector = edge(name, curve)
    key = read_zkey("k", vector.read("circuit.zkey"))
    proofs = [
        write_proof_json(
            _prove_with(backend, backend.load(key, check=False), witness_of(vector), 123, 456)
        )
        for backend in (NativeBackend(), ReferenceBackend())
    ]
    assert proofs[0] == proofs[1]


@pytest.mark.parametrize("vector", UNSATISFIED, ids=str)
def test_a_witness_that_does_not_satisfy_the_circuit_gives_no_valid_proof(
    vector: CircuitVector,
) -> None:
    wrong = witness_of(vector, "unsatisfied.wtns")
    proof = proof_of(vector, wrong)
    assert not verifier_of(vector).verify(wrong.statement(vector.facts["n_public"]), proof)


@pytest.mark.parametrize("vector", UNSATISFIED, ids=str)
def test_the_first_row_that_a_witness_breaks_is_found(vector: CircuitVector) -> None:
    r1cs = read_r1cs("c", vector.read("circuit.r1cs"))
    assert BACKEND.check_rows(r1cs, witness_of(vector)) is None
    wrong = witness_of(vector, "unsatisfied.wtns")
    assert BACKEND.check_rows(r1cs, wrong) == vector.facts["unsatisfied_first_bad_row"]


@both_curves
def test_a_witness_of_another_circuit_of_the_same_size_gives_no_valid_proof(curve: str) -> None:
    one, other = edge("one-constraint", curve), edge("no-public", curve)
    witness = witness_of(other)
    assert witness.n_wires == one.facts["wires"]
    assert not verifier_of(one).verify(witness.statement(1), proof_of(one, witness))


def test_key_and_witness_of_different_sizes_or_curves_are_refused() -> None:
    one = edge("one-constraint")
    with pytest.raises(MismatchError, match="number of wires"):
        proof_of(one, witness_of(edge("shapes")))
    with pytest.raises(MismatchError, match="curve"):
        proof_of(one, witness_of(edge("one-constraint", "bls12-381")))


@both_curves
def test_a_point_of_the_key_off_its_curve_is_refused_when_it_is_loaded(curve: str) -> None:
    key = read_zkey("k", edge("one-constraint", curve).read("circuit.zkey"))
    for query, points in key.queries.items():
        damaged = bytearray(points)
        damaged[0] ^= 1
        changed = dataclasses.replace(key, queries={**key.queries, query: bytes(damaged)})
        with pytest.raises(EncodingError, match=rf"{query.value}\[0\]"):
            BACKEND.load(changed, check=True)
