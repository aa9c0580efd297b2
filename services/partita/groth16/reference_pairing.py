"""The oracle of the verifier: Groth16's equation by the Tate pairing over Python integers.

Slow (a fraction of a second a proof) and obvious: the Miller loop over the bits of r with affine
points of G1, the final exponentiation as one power and a look at where it lies. It shares no code
with the native verifier that services use. Any non-degenerate bilinear pairing decides the equation
alike, so the choice of Tate's changes nothing.

Sources: Miller, "The Weil Pairing, and Its Efficient Calculation" (2004); Barreto, Kim, Lynn and
Scott, eprint 2002/008 (vertical lines drop out); Groth, eprint 2016/260 section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita.groth16.curves import Curve, curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.fields import Fp2Element
from partita.groth16.fp12 import Fp12, Fp12Tower
from partita.groth16.points import PointG1, PointG2
from partita.groth16.proof import Proof
from partita.groth16.verifying_key import VerifyingKey


def verify(vk: VerifyingKey, statement: Sequence[int], proof: Proof) -> bool:
    """Whether e(A, B) = e(α, β) · e(Σ x_i·IC_i, γ) · e(C, δ) with x_0 = 1.

    Args:
        vk: the verifying key.
        statement: n_public values below r.
        proof: a well-formed proof.

    Raises:
        MismatchError: another curve, or another number of values.
    """
    curve = curve_named(vk.curve)
    if proof.curve != vk.curve:
        raise MismatchError("curve of the proof", vk.curve, proof.curve)
    if len(statement) != vk.n_public:
        raise MismatchError("number of public inputs", vk.n_public, len(statement))
    inputs = curve.g1.sum_of_products(zip(vk.ic, [1, *statement], strict=True))
    return pairings_multiply_to_one(
        curve,
        [
            (curve.g1.neg(proof.a), proof.b),
            (vk.alpha_g1, vk.beta_g2),
            (inputs, vk.gamma_g2),
            (proof.c, vk.delta_g2),
        ],
    )


def pairings_multiply_to_one(curve: Curve, pairs: Iterable[tuple[PointG1, PointG2]]) -> bool:
    """Whether the product of e(P, Q) over the pairs is one; infinity on either side gives one."""
    tower = Fp12Tower(curve)
    product = tower.one
    for p, q in pairs:
        if p is not None and q is not None:
            product = tower.mul(product, _miller_loop(tower, p, q))
    # The final exponent is (q^6 - 1) times this one, and x^(q^6 - 1) is one exactly for x in Fp6,
    # where the odd powers of w are missing.
    power = tower.pow(product, (curve.fq.modulus**6 + 1) // curve.r)
    return not any(power[1::2])


def _miller_loop(tower: Fp12Tower, p: tuple[int, int], q: tuple[Fp2Element, Fp2Element]) -> Fp12:
    """f_{r,P}(Q) without vertical lines, whose values lie in a proper subfield."""
    g1 = tower.curve.g1
    x_q, y_q = tower.untwist(q)
    f = tower.one
    t: PointG1 = p
    for bit in f"{tower.curve.r:b}"[1:]:
        f = tower.mul(f, f)
        if t is not None:
            f = tower.mul(f, _line(tower, t, t, x_q, y_q))
            t = g1.add(t, t)
        if bit == "1" and t is not None:
            f = tower.mul(f, _line(tower, t, p, x_q, y_q))
            t = g1.add(t, p)
    return f


def _line(tower: Fp12Tower, s: tuple[int, int], t: tuple[int, int], x_q: Fp12, y_q: Fp12) -> Fp12:
    """The line through S and T (the tangent where they are equal) at Q; one if vertical."""
    fq, modulus = tower.curve.fq, tower.q
    if s == t:
        slope = fq.mul(3 * s[0] * s[0], fq.inv(2 * s[1] % modulus))
    elif s[0] == t[0]:
        return tower.one
    else:
        slope = fq.mul(t[1] - s[1], fq.inv((t[0] - s[0]) % modulus))
    value = [(y - slope * x) % modulus for x, y in zip(x_q, y_q, strict=True)]
    value[0] = (value[0] + slope * s[0] - s[1]) % modulus
    return value
