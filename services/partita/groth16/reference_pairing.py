"""The oracle of the verifier: Groth16's equation by the Tate pairing over Python integers.

Slow (a fraction of a second a proof) and obvious: Fp12 as polynomials in w modulo
w^12 - k·w^6 + n, the Miller loop over the bits of r with affine points of G1, the final
exponentiation as one power and a look at where it lies. It shares no code with the native
verifier that services use. Any non-degenerate bilinear pairing decides the equation alike, so the
choice of Tate's changes nothing.

Sources: Miller, "The Weil Pairing, and Its Efficient Calculation" (2004); Barreto, Kim, Lynn and
Scott, eprint 2002/008 (vertical lines drop out); Groth, eprint 2016/260 section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from partita.groth16.curves import BN254, Curve, curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.fields import Fp2Element
from partita.groth16.points import PointG1, PointG2
from partita.groth16.proof import Proof
from partita.groth16.verifying_key import VerifyingKey

_Fp12: TypeAlias = list[int]


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
    tower = _Tower(curve)
    product = tower.one
    for p, q in pairs:
        if p is not None and q is not None:
            product = tower.mul(product, tower.miller_loop(p, q))
    # The final exponent is (q^6 - 1) times this one, and x^(q^6 - 1) is one exactly for x in Fp6,
    # where the odd powers of w are missing.
    power = tower.pow(product, (curve.fq.modulus**6 + 1) // curve.r)
    return not any(power[1::2])


class _Tower:
    """Fp12 of a curve as Fp[w] / (w^12 - k·w^6 + n), in which w^6 = ξ, the twist's constant."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.q = curve.fq.modulus
        # u = w^6 - real with ξ = real + u, so w^12 = 2·real·w^6 - (real² + 1).
        self.real = 9 if curve is BN254 else 1
        self.one: _Fp12 = [1] + [0] * 11

    def mul(self, x: _Fp12, y: _Fp12) -> _Fp12:
        wide = [0] * 23
        for i, a in enumerate(x):
            if a:
                for j, b in enumerate(y):
                    wide[i + j] += a * b
        for k in range(22, 11, -1):
            wide[k - 6] += 2 * self.real * wide[k]
            wide[k - 12] -= (self.real * self.real + 1) * wide[k]
        return [c % self.q for c in wide[:12]]

    def pow(self, x: _Fp12, exponent: int) -> _Fp12:
        result = self.one
        for bit in f"{exponent:b}":
            result = self.mul(result, result)
            if bit == "1":
                result = self.mul(result, x)
        return result

    def untwist(self, q: tuple[Fp2Element, Fp2Element]) -> tuple[_Fp12, _Fp12]:
        """A point of G2 on the curve over Fp12: w² and w³ times x and y, or divided by them."""
        x, y = q
        if self.curve is BN254:  # b' = b/ξ
            return self._embed(x, 2), self._embed(y, 3)
        fq2 = self.curve.g2.field  # b' = b·ξ: 1/w² = w⁴/ξ and 1/w³ = w³/ξ
        xi_inv = fq2.inv((self.real, 1))
        return self._embed(fq2.mul(x, xi_inv), 4), self._embed(fq2.mul(y, xi_inv), 3)

    def miller_loop(self, p: tuple[int, int], q: tuple[Fp2Element, Fp2Element]) -> _Fp12:
        """f_{r,P}(Q) without vertical lines, whose values lie in a proper subfield."""
        x_q, y_q = self.untwist(q)
        f = self.one
        t: PointG1 = p
        for bit in f"{self.curve.r:b}"[1:]:
            f = self.mul(f, f)
            if t is not None:
                f = self.mul(f, self._line(t, t, x_q, y_q))
                t = self.curve.g1.add(t, t)
            if bit == "1" and t is not None:
                f = self.mul(f, self._line(t, p, x_q, y_q))
                t = self.curve.g1.add(t, p)
        return f

    def _line(self, s: tuple[int, int], t: tuple[int, int], x_q: _Fp12, y_q: _Fp12) -> _Fp12:
        """The line through S and T (the tangent where they are equal) at Q; one if vertical."""
        fq = self.curve.fq
        if s == t:
            slope = fq.mul(3 * s[0] * s[0], fq.inv(2 * s[1] % self.q))
        elif s[0] == t[0]:
            return self.one
        else:
            slope = fq.mul(t[1] - s[1], fq.inv((t[0] - s[0]) % self.q))
        value = [(y - slope * x) % self.q for x, y in zip(x_q, y_q, strict=True)]
        value[0] = (value[0] + slope * s[0] - s[1]) % self.q
        return value

    def _embed(self, x: Fp2Element, power: int) -> _Fp12:
        """(c0 + c1·u)·w^power with u = w^6 - real, for power <= 5."""
        element = [0] * 12
        element[power] = (x[0] - self.real * x[1]) % self.q
        element[power + 6] = x[1]
        return element
