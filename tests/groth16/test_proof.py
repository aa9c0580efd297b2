"""Proofs on the wire."""

from __future__ import annotations

import pytest

from partita.groth16.curves import BLS12_381, BN254, CURVES, Curve
from partita.groth16.encodings import write_compressed, write_uncompressed
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.proof import Proof, proof_size_bytes
from tests.groth16.test_curves import off_subgroup

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


def some_proof(curve: Curve) -> Proof:
    """A well-formed proof of nothing."""
    a = curve.g1.mul(curve.g1.generator, 3)
    b = curve.g2.mul(curve.g2.generator, 5)
    c = curve.g1.mul(curve.g1.generator, -7)
    assert a is not None
    assert b is not None
    assert c is not None
    return Proof(curve.name, a, b, c)


@CURVE
def test_a_proof_round_trips(curve: Curve) -> None:
    proof = some_proof(curve)
    data = proof.to_bytes()
    assert len(data) == proof_size_bytes(curve) == {"bn254": 256, "bls12-381": 192}[curve.name]
    assert Proof.from_bytes(curve.name, data) == proof


@CURVE
def test_a_proof_of_another_length_is_refused(curve: Curve) -> None:
    data = some_proof(curve).to_bytes()
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(FormatError, match=rf"proof: {len(wrong)} bytes, expected {len(data)}"):
            Proof.from_bytes(curve.name, wrong)


@CURVE
@pytest.mark.parametrize(("element", "offset_share"), [("a", 0), ("b", 1), ("c", 3)])
def test_a_malformed_element_is_named(curve: Curve, element: str, offset_share: int) -> None:
    data = bytearray(some_proof(curve).to_bytes())
    offset = offset_share * len(data) // 4
    data[offset : offset + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(EncodingError) as refused:
        Proof.from_bytes(curve.name, bytes(data))
    assert refused.value.where == f"proof.{element}"


def test_a_point_of_the_wrong_subgroup_is_named() -> None:
    good = some_proof(BLS12_381).to_bytes()
    wrong_a = write_compressed(BLS12_381.g1, off_subgroup(BLS12_381.g1)) + good[48:]
    with pytest.raises(EncodingError, match=r"proof\.a: .*subgroup"):
        Proof.from_bytes("bls12-381", wrong_a)
    good = some_proof(BN254).to_bytes()
    bad_b = write_uncompressed(BN254, BN254.g2, off_subgroup(BN254.g2))
    with pytest.raises(EncodingError, match=r"proof\.b: .*subgroup"):
        Proof.from_bytes("bn254", good[:64] + bad_b + good[192:])


@CURVE
def test_infinity_is_no_element_of_a_proof(curve: Curve) -> None:
    data = some_proof(curve).to_bytes()
    size = len(data) // 4
    infinity = b"\xc0" + bytes(size - 1) if curve is BLS12_381 else bytes(size)
    with pytest.raises(EncodingError, match=r"proof\.c: the point at infinity"):
        Proof.from_bytes(curve.name, data[:-size] + infinity)
    g1, g2 = curve.g1.to_device(curve.g1.generator), bytes(curve.g2.point_size_bytes)
    with pytest.raises(EncodingError, match=r"proof\.b: the point at infinity"):
        Proof.from_device(curve.name, g1, g2, g1)


def test_bn254_coordinates_are_in_the_order_of_eip_197() -> None:
    generator = BN254.g2.generator
    g1 = BN254.g1.generator
    data = Proof("bn254", g1, generator, g1).to_bytes()
    assert data[:64] == (1).to_bytes(32, "big") + (2).to_bytes(32, "big")
    assert data[64:96] == generator[0][1].to_bytes(32, "big")
    assert data[96:128] == generator[0][0].to_bytes(32, "big")
