"""The native verifier: the oracle's answer, with a reason for what is malformed."""

from __future__ import annotations

import dataclasses

import pytest

from partita.groth16.curves import CURVES, Curve, curve_named
from partita.groth16.encodings import write_compressed, write_uncompressed
from partita.groth16.errors import EncodingError, FormatError, MismatchError
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.statement import encode_statement
from partita.groth16.verifier import VALID, Verifier
from partita.groth16.verifying_key import VerifyingKey
from tests.groth16.test_curves import off_subgroup
from tests.groth16.tiny_setup import Circuit, edge_circuits, product_circuit, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
FAMILY = pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)
BACKEND = NativeBackend()


def proved(
    circuit: Circuit, curve: str, family: KeyFamily, count: int = 1
) -> tuple[Verifier, list[tuple[bytes, bytes]]]:
    """A verifier and (statement, proof) pairs, each proof with randomness of its own."""
    key = set_up(circuit, curve, family)
    loaded = BACKEND.load(key, check=False)
    witness = circuit.witness_of(curve)
    items = [
        (witness.statement(circuit.n_public), prove(BACKEND, loaded, witness).to_bytes())
        for _ in range(count)
    ]
    return Verifier(VerifyingKey.of_proving_key(key)), items


@CURVE
@FAMILY
@pytest.mark.parametrize("circuit", edge_circuits(), ids=lambda c: c.name)
def test_proofs_of_edge_circuits_are_accepted(
    curve: Curve, family: KeyFamily, circuit: Circuit
) -> None:
    verifier, [(statement, proof)] = proved(circuit, curve.name, family)
    assert verifier.n_public == circuit.n_public
    assert verifier.verify(statement, proof)
    assert verifier.verify_batch([(statement, proof)]) == [VALID]


@CURVE
@FAMILY
def test_a_wrong_witness_and_a_wrong_statement_are_not_accepted(
    curve: Curve, family: KeyFamily
) -> None:
    circuit = product_circuit()
    verifier, [(statement, proof)] = proved(circuit, curve.name, family)
    assert verifier.verify(statement, proof)
    assert not verifier.verify(encode_statement(curve, [circuit.witness[1] + 1]), proof)
    circuit.witness[3] += 1
    _, [(statement, wrong)] = proved(circuit, curve.name, family)
    assert not verifier.verify(statement, wrong)


@CURVE
def test_a_batch_names_exactly_the_bad_entries(curve: Curve) -> None:
    verifier, items = proved(product_circuit(), curve.name, KeyFamily.SNARKJS, count=7)
    assert verifier.verify_batch(items) == [VALID] * 7
    assert verifier.verify_batch([]) == []
    statement, proof = items[0]
    items[2] = (encode_statement(curve, [4]), proof)
    items[3] = (statement, proof[:-1])
    items[5] = (curve.r.to_bytes(32, "little"), proof)
    items[6] = (b"", proof)
    verdicts = verifier.verify_batch(items)
    assert [v.valid for v in verdicts] == [True, True, False, False, True, False, False]
    assert [v.reason for v in verdicts if v.valid] == ["", "", ""]
    assert "equation" in verdicts[2].reason
    assert f"found {len(proof) - 1}" in verdicts[3].reason
    assert "not below the modulus" in verdicts[5].reason
    assert "statement" in verdicts[6].reason


@CURVE
def test_swapped_proofs_of_a_batch_do_not_cancel_out(curve: Curve) -> None:
    # Two entries whose errors are opposite pass a check with equal coefficients.
    verifier, items = proved(product_circuit(), curve.name, KeyFamily.SNARKJS, count=2)
    (statement, first), (_, second) = items
    size = curve.g1.field.size_bytes if curve.name == "bls12-381" else curve.g1.point_size_bytes
    swapped = [
        (statement, first[:-size] + second[-size:]),
        (statement, second[:-size] + first[-size:]),
    ]
    assert [v.valid for v in verifier.verify_batch(swapped)] == [False, False]


@CURVE
@pytest.mark.parametrize(("element", "share"), [("a", 0), ("b", 1), ("c", 3)])
def test_a_malformed_element_of_a_proof_is_named(curve: Curve, element: str, share: int) -> None:
    verifier, [(statement, proof)] = proved(product_circuit(), curve.name, KeyFamily.SNARKJS)
    at = share * len(proof) // 4
    broken = proof[:at] + b"\xff" * 8 + proof[at + 8 :]
    with pytest.raises(EncodingError, match=rf"^proof\.{element}: "):
        verifier.verify(statement, broken)
    [verdict] = verifier.verify_batch([(statement, broken)])
    assert not verdict.valid
    assert verdict.reason


@CURVE
def test_a_proof_of_another_length_or_at_infinity_is_malformed(curve: Curve) -> None:
    verifier, [(statement, proof)] = proved(product_circuit(), curve.name, KeyFamily.SNARKJS)
    for wrong in (b"", proof[:-1], proof + b"\0"):
        with pytest.raises(FormatError, match=r"^proof: .*expected"):
            verifier.verify(statement, wrong)
    size = len(proof) // 4
    infinity = b"\xc0" + bytes(size - 1) if curve.name == "bls12-381" else bytes(size)
    with pytest.raises(EncodingError, match=r"^proof\.c: .*infinity"):
        verifier.verify(statement, proof[:-size] + infinity)


def test_a_proof_point_outside_the_subgroup_is_malformed() -> None:
    bls, bn = curve_named("bls12-381"), curve_named("bn254")
    verifier, [(statement, proof)] = proved(product_circuit(), "bls12-381", KeyFamily.SNARKJS)
    with pytest.raises(EncodingError, match=r"^proof\.a: .*subgroup"):
        verifier.verify(statement, write_compressed(bls.g1, off_subgroup(bls.g1)) + proof[48:])
    b = write_compressed(bls.g2, off_subgroup(bls.g2))
    with pytest.raises(EncodingError, match=r"^proof\.b: .*subgroup"):
        verifier.verify(statement, proof[:48] + b + proof[144:])
    verifier, [(statement, proof)] = proved(product_circuit(), "bn254", KeyFamily.SNARKJS)
    b = write_uncompressed(bn, bn.g2, off_subgroup(bn.g2))
    with pytest.raises(EncodingError, match=r"^proof\.b: .*subgroup"):
        verifier.verify(statement, proof[:64] + b + proof[192:])


@CURVE
def test_a_statement_of_another_length_or_outside_the_field_is_named(curve: Curve) -> None:
    verifier, [(statement, proof)] = proved(product_circuit(), curve.name, KeyFamily.SNARKJS)
    with pytest.raises(MismatchError, match=r"statement length differs: expected 32 bytes"):
        verifier.verify(statement + statement, proof)
    with pytest.raises(EncodingError, match=r"statement\[0\]"):
        verifier.verify(b"\xff" * 32, proof)


@CURVE
def test_a_malformed_verifying_key_is_refused_by_name(curve: Curve) -> None:
    key = set_up(product_circuit(), curve.name, KeyFamily.SNARKJS)
    vk = VerifyingKey.of_proving_key(key)
    x, y = curve.g1.generator
    with pytest.raises(EncodingError, match=r"^verifying key ic\[1\]: off the curve"):
        Verifier(dataclasses.replace(vk, ic=(vk.ic[0], (x, y + 1))))
    with pytest.raises(EncodingError, match=r"^verifying key gamma_g2: wrong subgroup"):
        Verifier(dataclasses.replace(vk, gamma_g2=off_subgroup(curve.g2)))


@CURVE
def test_an_ic_point_at_infinity_is_allowed(curve: Curve) -> None:
    key = set_up(product_circuit(), curve.name, KeyFamily.SNARKJS)
    vk = VerifyingKey.of_proving_key(key)
    _, [(statement, proof)] = proved(product_circuit(), curve.name, KeyFamily.SNARKJS)
    altered = Verifier(dataclasses.replace(vk, ic=(vk.ic[0], None)))
    assert not altered.verify(statement, proof)
