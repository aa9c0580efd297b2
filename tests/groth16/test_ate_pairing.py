"""The written pairing: bilinear, not degenerate, of order r (its exact value: snarkjs' vectors)."""

from __future__ import annotations

import pytest

from partita.groth16.ate_pairing import pairing_value
from partita.groth16.curves import CURVES, Curve


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_scalars_move_between_the_groups(curve: Curve) -> None:
    p, q = curve.g1.generator, curve.g2.generator
    p5, q5, p6 = curve.g1.mul(p, 5), curve.g2.mul(q, 5), curve.g1.mul(p, 6)
    assert p5 is not None
    assert q5 is not None
    assert p6 is not None
    value = pairing_value(curve, p5, q)
    assert value == pairing_value(curve, p, q5)
    assert value != pairing_value(curve, p6, q)
    assert [len(half) for half in value] == [3, 3]
