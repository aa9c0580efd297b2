"""Fp12 over Python integers: the field in which both pairings of this library have their values.

An element is a polynomial in w modulo w^12 - k·w^6 + n, as the list of its twelve coefficients;
w^6 is ξ, the constant of the twist. Slow and obvious: services verify in native code.
"""

from __future__ import annotations

from typing import TypeAlias

from partita.groth16.curves import BN254, Curve
from partita.groth16.fields import Fp2Element

Fp12: TypeAlias = list[int]


class Fp12Tower:
    """Fp12 of a curve.

    Attributes:
        curve: the curve.
        q: the modulus of its base field.
        real: the real part of ξ = real + u, the twist's constant.
        one: the element 1.
    """

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.q = curve.fq.modulus
        # u = w^6 - real with ξ = real + u, so w^12 = 2·real·w^6 - (real² + 1).
        self.real = 9 if curve is BN254 else 1
        self.one: Fp12 = [1] + [0] * 11

    def mul(self, x: Fp12, y: Fp12) -> Fp12:
        """x·y."""
        wide = [0] * 23
        for i, a in enumerate(x):
            if a:
                for j, b in enumerate(y):
                    wide[i + j] += a * b
        for k in range(22, 11, -1):
            wide[k - 6] += 2 * self.real * wide[k]
            wide[k - 12] -= (self.real * self.real + 1) * wide[k]
        return [c % self.q for c in wide[:12]]

    def pow(self, x: Fp12, exponent: int) -> Fp12:
        """x^exponent for an exponent that is not negative."""
        result = self.one
        for bit in f"{exponent:b}":
            result = self.mul(result, result)
            if bit == "1":
                result = self.mul(result, x)
        return result

    def untwist(self, q: tuple[Fp2Element, Fp2Element]) -> tuple[Fp12, Fp12]:
        """A point of G2 on the curve over Fp12: w² and w³ times x and y, or divided by them."""
        x, y = q
        if self.curve is BN254:  # b' = b/ξ
            return self.embed(x, 2), self.embed(y, 3)
        fq2 = self.curve.g2.field  # b' = b·ξ: 1/w² = w⁴/ξ and 1/w³ = w³/ξ
        xi_inv = fq2.inv((self.real, 1))
        return self.embed(fq2.mul(x, xi_inv), 4), self.embed(fq2.mul(y, xi_inv), 3)

    def embed(self, x: Fp2Element, power: int) -> Fp12:
        """(c0 + c1·u)·w^power with u = w^6 - real, for power <= 5."""
        element = [0] * 12
        element[power] = (x[0] - self.real * x[1]) % self.q
        element[power + 6] = x[1]
        return element
