"""The pairing oracle: bilinear, not degenerate, and strict about shapes."""

from __future__ import annotations

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.errors import MismatchError
from partita.groth16.keys import KeyFamily
from partita.groth16.reference_pairing import pairings_multiply_to_one, verify
from partita.groth16.verifying_key import VerifyingKey
from tests.groth16.test_proof import some_proof
from tests.groth16.tiny_setup import product_circuit, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@CURVE
def test_the_pairing_is_bilinear_and_not_degenerate(curve: Curve) -> None:
    g1, g2 = curve.g1, curve.g2
    p, q = g1.generator, g2.generator

    def balanced(left: int, right: int, product: int) -> bool:
        return pairings_multiply_to_one(
            curve, [(g1.mul(p, left), g2.mul(q, right)), (g1.mul(p, -product), q)]
        )

    assert balanced(5, 7, 35)
    assert not balanced(5, 7, 36)
    assert not pairings_multiply_to_one(curve, [(p, q)])


@CURVE
def test_infinity_contributes_one(curve: Curve) -> None:
    assert pairings_multiply_to_one(curve, [(None, curve.g2.generator), (curve.g1.generator, None)])
    assert pairings_multiply_to_one(curve, [])


def test_a_statement_or_proof_of_another_shape_is_refused() -> None:
    bn254, bls = CURVES["bn254"], CURVES["bls12-381"]
    vk = VerifyingKey.of_proving_key(set_up(product_circuit(), "bn254", KeyFamily.SNARKJS))
    with pytest.raises(MismatchError, match="number of public inputs differs: expected 1, found 2"):
        verify(vk, [1, 2], some_proof(bn254))
    with pytest.raises(MismatchError, match="curve of the proof"):
        verify(vk, [1], some_proof(bls))
