"""Fields over Python integers: roots, inverses, encodings."""

from __future__ import annotations

import pytest

from partita.groth16.curves import BLS12_381, BN254, CURVES, Curve
from partita.groth16.errors import EncodingError

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@CURVE
def test_a_square_has_a_root_and_exactly_one_of_the_two_is_larger(curve: Curve) -> None:
    fq, fq2 = curve.g1.field, curve.g2.field
    for x in (1, 2, 3, curve.fq.modulus - 5):
        root = fq.sqrt(fq.sqr(x))
        assert root in (x, fq.neg(x))
        assert fq.is_larger_root(x) != fq.is_larger_root(fq.neg(x))
    for y in ((1, 0), (0, 1), (3, 5), (7, curve.fq.modulus - 1), (0, curve.fq.modulus - 2)):
        root2 = fq2.sqrt(fq2.sqr(y))
        assert root2 in (y, fq2.neg(y))
        assert fq2.is_larger_root(y) != fq2.is_larger_root(fq2.neg(y))


@CURVE
def test_a_non_residue_has_no_root(curve: Curve) -> None:
    # -1 is none in Fq (q = 3 mod 4); the twist's constant is none in Fq2.
    assert curve.fq.sqrt(curve.fq.modulus - 1) is None
    xi = (9, 1) if curve is BN254 else (1, 1)
    assert curve.g2.field.sqrt(xi) is None


@CURVE
def test_x_times_its_inverse_is_one_and_zero_has_none(curve: Curve) -> None:
    fq2 = curve.g2.field
    assert fq2.mul((3, 4), fq2.inv((3, 4))) == fq2.one
    assert curve.fq.inv(2) * 2 % curve.fq.modulus == 1
    with pytest.raises(ZeroDivisionError):
        fq2.inv((0, 0))


def test_roots_in_the_scalar_field_are_refused_rather_than_wrong() -> None:
    with pytest.raises(ValueError, match="base fields only"):
        BLS12_381.fr.sqrt(4)


@CURVE
def test_encodings_of_an_element_are_inverse_to_each_other(curve: Curve) -> None:
    fq2 = curve.g2.field
    x = (5, curve.fq.modulus - 1)
    assert fq2.from_big_endian(fq2.to_big_endian(x), "x") == x
    assert fq2.from_montgomery(fq2.to_montgomery(x), "x") == x
    assert fq2.to_big_endian(x).endswith(b"\x05")  # c1 first
    radix = 1 << (8 * curve.fq.size_bytes)
    assert curve.fq.to_montgomery(1) == (radix % curve.fq.modulus).to_bytes(
        curve.fq.size_bytes, "little"
    )


@CURVE
@pytest.mark.parametrize("coordinate", [0, 1])
def test_a_coordinate_equal_to_the_modulus_is_refused_by_name(
    curve: Curve, coordinate: int
) -> None:
    size = curve.fq.size_bytes
    parts = [bytes(size), bytes(size)]
    parts[coordinate] = curve.fq.modulus.to_bytes(size, "big")
    with pytest.raises(EncodingError, match=r"point 7: .*modulus"):
        curve.g2.field.from_big_endian(b"".join(parts), "point 7")
    parts[coordinate] = curve.fq.modulus.to_bytes(size, "little")
    with pytest.raises(EncodingError, match=r"point 7: .*modulus"):
        curve.g2.field.from_montgomery(b"".join(parts), "point 7")
