"""e(P, Q) itself, as the element of Fp12 that snarkjs writes into a verification_key.json.

Groth16's equation does not mind which pairing decides it; a written value does. This is the
optimal ate pairing raised to the power that the usual chains of the final exponentiation add:
3 on BLS12-381, 2x(6x² + 3x + 1) on BN254. About 0.2 s over Python integers; it decides nothing,
proofs are verified in native code.

Sources: Vercauteren, eprint 2008/096 (the loops); Fuentes-Castañeda, Knapp and
Rodríguez-Henríquez, "Faster Hashing to G2" (2011), and Hayashida, Hayasaka and Teruya, eprint
2020/875 (the powers).
"""

from __future__ import annotations

from typing import Final

from partita.groth16.curves import BN254, Curve
from partita.groth16.fields import Fp2Element
from partita.groth16.fp12 import Fp12, Fp12Tower

_BN254_X: Final = 4965661367192848881
_BLS12_381_ABS_X: Final = 0xD201000000010000
"""The curve's parameter x is minus this."""

_Affine = tuple[Fp2Element, Fp2Element]


def pairing_value(
    curve: Curve, p: tuple[int, int], q: tuple[Fp2Element, Fp2Element]
) -> tuple[tuple[Fp2Element, ...], ...]:
    """e(P, Q) as 2 x 3 elements of Fp2: entry [j][i] is the coefficient of w^(2i + j).

    Args:
        curve: whose groups they are of.
        p: an affine point of G1.
        q: an affine point of G2.
    """
    tower = Fp12Tower(curve)
    if curve is BN254:
        f = _miller_loop_bn254(tower, p, q)
        power = 2 * _BN254_X * (6 * _BN254_X**2 + 3 * _BN254_X + 1)
    else:
        f, _ = _loop(tower, p, q, _BLS12_381_ABS_X)
        f = _power_of_q_squared(tower, f, 3)  # x is negative: conjugation stands for inversion
        power = 3
    value = _final_exponentiation(tower, f, power)
    # w^6 = real + u: a + b·w^6 is (a + real·b) + b·u.
    pairs = [((a + tower.real * b) % tower.q, b) for a, b in zip(value[:6], value[6:], strict=True)]
    return tuple(tuple(pairs[j::2]) for j in range(2))


def _loop(tower: Fp12Tower, p: tuple[int, int], q: _Affine, count: int) -> tuple[Fp12, _Affine]:
    """f_{count,Q}(P) without vertical lines, and count·Q; count is below r, so none is infinite."""
    f, t = tower.one, q
    for bit in f"{count:b}"[1:]:
        f = tower.mul(f, f)
        f, t = _step(tower, f, p, t, t)
        if bit == "1":
            f, t = _step(tower, f, p, t, q)
    return f, t


def _miller_loop_bn254(tower: Fp12Tower, p: tuple[int, int], q: _Affine) -> Fp12:
    """f_{6x+2,Q}(P) with the lines through Frobenius' π(Q) and -π²(Q)."""
    f, t = _loop(tower, p, q, 6 * _BN254_X + 2)
    once = _frobenius(tower, q)
    x, y = _frobenius(tower, once)
    f, t = _step(tower, f, p, t, once)
    f, _ = _step(tower, f, p, t, (x, tower.curve.g2.field.neg(y)))
    return f


def _frobenius(tower: Fp12Tower, point: _Affine) -> _Affine:
    """π on the twist of BN254: (x̄·ξ^((q-1)/3), ȳ·ξ^((q-1)/2))."""
    fq2, q = tower.curve.g2.field, tower.q
    x, y = ((c0, -c1 % q) for c0, c1 in point)
    return fq2.mul(x, _xi_power(tower, (q - 1) // 3)), fq2.mul(y, _xi_power(tower, (q - 1) // 2))


def _xi_power(tower: Fp12Tower, exponent: int) -> Fp2Element:
    fq2 = tower.curve.g2.field
    result, xi = (1, 0), (tower.real, 1)
    for bit in f"{exponent:b}":
        result = fq2.sqr(result)
        if bit == "1":
            result = fq2.mul(result, xi)
    return result


def _step(
    tower: Fp12Tower, f: Fp12, p: tuple[int, int], s: _Affine, t: _Affine
) -> tuple[Fp12, _Affine]:
    """f times the line through S and T (the tangent where they are equal) at P, and S + T.

    The line is that of the untwisted points times a power of w that the final exponentiation
    takes to one.
    """
    fq2 = tower.curve.g2.field
    (x_s, y_s), (x_t, y_t) = s, t
    if s == t:
        slope = fq2.mul(fq2.mul((3, 0), fq2.sqr(x_s)), fq2.inv(fq2.add(y_s, y_s)))
    else:
        slope = fq2.mul(fq2.sub(y_t, y_s), fq2.inv(fq2.sub(x_t, x_s)))
    x = fq2.sub(fq2.sub(fq2.sqr(slope), x_s), x_t)
    y = fq2.sub(fq2.mul(slope, fq2.sub(x_s, x)), y_s)
    at_y, at_x, constant = (0, 1, 3) if tower.curve is BN254 else (3, 2, 0)
    terms = (
        tower.embed((p[1], 0), at_y),
        tower.embed(fq2.mul(slope, (-p[0] % tower.q, 0)), at_x),
        tower.embed(fq2.sub(fq2.mul(slope, x_s), y_s), constant),
    )
    line = [sum(parts) % tower.q for parts in zip(*terms, strict=True)]
    return tower.mul(f, line), (x, y)


def _final_exponentiation(tower: Fp12Tower, f: Fp12, power: int) -> Fp12:
    """f^(power·(q^12 - 1)/r), as (q^6 - 1)(q² + 1) and then the rest of the exponent."""
    easy = tower.mul(_power_of_q_squared(tower, f, 3), _inverse(tower, f))
    easy = tower.mul(_power_of_q_squared(tower, easy, 1), easy)
    q = tower.q
    return tower.pow(easy, (q**4 - q**2 + 1) // tower.curve.r * power)


def _inverse(tower: Fp12Tower, f: Fp12) -> Fp12:
    """1/f: the product of its conjugates over Fp2 by its norm, which lies in Fp2."""
    others = tower.one
    for times in range(1, 6):
        others = tower.mul(others, _power_of_q_squared(tower, f, times))
    norm = tower.mul(f, others)
    in_fq2 = ((norm[0] + tower.real * norm[6]) % tower.q, norm[6])
    return tower.mul(others, tower.embed(tower.curve.g2.field.inv(in_fq2), 0))


def _power_of_q_squared(tower: Fp12Tower, f: Fp12, times: int) -> Fp12:
    """f^(q^(2·times)): w goes to γ·w, where γ = ξ^((q²-1)/6) is a sixth root of unity in Fp."""
    gamma, _ = _xi_power(tower, (tower.q**2 - 1) // 6)
    return [c * pow(gamma, k * times, tower.q) % tower.q for k, c in enumerate(f)]
