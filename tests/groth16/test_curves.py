"""The curves' constants and the oracle's point arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from partita.groth16.curves import BLS12_381, BN254, CURVES, Curve, curve_named
from partita.groth16.errors import EncodingError, MismatchError
from partita.groth16.keys import KeyFamily
from partita.groth16.points import Group

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
GROUPS: list[Any] = [g for c in CURVES.values() for g in (c.g1, c.g2)]
GROUP = pytest.mark.parametrize(
    "group", GROUPS, ids=[f"{c}-{g}" for c in CURVES for g in ("g1", "g2")]
)


def off_subgroup(group: Group[Any]) -> tuple[Any, Any]:
    """A point of the curve outside the subgroup of order r."""
    x = group.field.one
    while (y := group.field.sqrt(group.right_side(x))) is None or group.is_in_subgroup((x, y)):
        x = group.field.add(x, group.field.one)
    return x, y


@GROUP
def test_the_generator_is_on_the_curve_and_has_order_r(group: Group[Any]) -> None:
    assert group.is_on_curve(group.generator)
    assert group._multiple(group.generator, group.order) is None
    assert group._multiple(group.generator, group.order + 2) == group.add(
        group.generator, group.generator
    )


@GROUP
def test_the_cofactor_brings_every_point_into_the_subgroup(group: Group[Any]) -> None:
    if group.cofactor == 1:
        assert group.is_in_subgroup(group.generator)
        return
    point = off_subgroup(group)
    assert group.is_on_curve(point)
    assert not group.is_in_subgroup(point)
    cleared = group._multiple(point, group.cofactor)
    assert cleared is not None
    assert group.is_in_subgroup(cleared)
    with pytest.raises(EncodingError, match=r"query a\[3\]: .*subgroup"):
        group.check(point, "query a[3]")


@GROUP
def test_addition_is_complete(group: Group[Any]) -> None:
    g = group.generator
    assert group.add(g, None) == g
    assert group.add(None, g) == g
    assert group.add(g, group.neg(g)) is None
    assert group.add(g, g) == group.mul(g, 2)
    assert group.add(group.mul(g, 5), group.mul(g, 7)) == group.mul(g, 12)
    assert group.mul(g, -1) == group.neg(g)
    assert group.sum_of_products([(g, 3), (None, 9), (g, 0), (g, 4)]) == group.mul(g, 7)


@GROUP
def test_a_point_off_the_curve_is_refused_by_name(group: Group[Any]) -> None:
    x, y = group.generator
    with pytest.raises(EncodingError, match=r"alpha: .*off the curve"):
        group.check((x, group.field.add(y, group.field.one)), "alpha")


@GROUP
def test_device_form_round_trips_and_infinity_is_all_zero(group: Group[Any]) -> None:
    points = [group.generator, None, group.mul(group.generator, 11)]
    data = b"".join(group.to_device(p) for p in points)
    assert len(data) == 3 * group.point_size_bytes
    assert list(group.each_from_device(data, "q")) == points
    assert group.to_device(None) == bytes(group.point_size_bytes)
    with pytest.raises(EncodingError, match=r"q: .*no multiple"):
        list(group.each_from_device(data[:-1], "q"))
    with pytest.raises(EncodingError, match=f"p: {len(data)} bytes"):
        group.from_device(data, "p")
    with pytest.raises(EncodingError, match=r"q\[1\]: .*modulus"):
        list(
            group.each_from_device(
                group.to_device(group.generator) + b"\xff" * group.point_size_bytes, "q"
            )
        )


def test_point_sizes_are_those_of_the_formats() -> None:
    assert [g.point_size_bytes for g in GROUPS] == [64, 128, 96, 192]


@CURVE
@pytest.mark.parametrize("family", KeyFamily)
def test_a_root_of_unity_has_exactly_its_order(curve: Curve, family: KeyFamily) -> None:
    for log in (0, 1, 5, curve.two_adicity):
        root = curve.root_of_unity(family, 1 << log)
        assert pow(root, 1 << log, curve.r) == 1
        assert log == 0 or pow(root, 1 << (log - 1), curve.r) == curve.r - 1
    for order in (0, 3, 2 << curve.two_adicity):
        with pytest.raises(MismatchError, match="root of unity"):
            curve.root_of_unity(family, order)


def test_the_roots_are_those_of_the_formats() -> None:
    # bellperson's ROOT_OF_UNITY of BLS12-381, as blstrs publishes it.
    assert BLS12_381.root_of_unity(KeyFamily.BELLPERSON, 1 << 32) == int(
        "16a2a19edfe81f20d09b681922c813b4b63683508c2280b93829971f439f0d2b", 16
    )
    # ffjavascript's w[28] of BN254.
    assert BN254.root_of_unity(KeyFamily.SNARKJS, 1 << 28) == int(
        "19103219067921713944291392827692070036145651957329286315305642004821462161904"
    )
    assert BLS12_381.root_of_unity(KeyFamily.SNARKJS, 4) != 0


def test_an_unknown_curve_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(MismatchError, match="bn254 or bls12-381, found bn128"):
        curve_named("bn128")
