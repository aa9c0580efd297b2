"""Whole vectors of points: checked, and turned from one form into the other."""

from __future__ import annotations

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.encodings import write_uncompressed
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.native import (
    check_points,
    points_from_uncompressed,
    points_to_uncompressed,
)
from tests.groth16.test_curves import off_subgroup

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
GROUP = pytest.mark.parametrize("group_name", ["g1", "g2"])


def some_points(curve: Curve, group_name: str, count: int) -> tuple[bytes, bytes]:
    """The first multiples of the generator, infinity among them: device form, uncompressed."""
    if group_name == "g1":
        g1 = curve.g1
        points = [g1.mul(g1.generator, k) for k in range(count)]
        return (
            b"".join(map(g1.to_device, points)),
            b"".join(write_uncompressed(curve, g1, p) for p in points),
        )
    g2 = curve.g2
    pairs = [g2.mul(g2.generator, k) for k in range(count)]
    return (
        b"".join(map(g2.to_device, pairs)),
        b"".join(write_uncompressed(curve, g2, p) for p in pairs),
    )


@CURVE
@GROUP
def test_both_forms_agree_with_the_oracle(curve: Curve, group_name: str) -> None:
    device, plain = some_points(curve, group_name, 20)
    assert points_from_uncompressed(curve.name, group_name, plain, str) == device
    assert points_to_uncompressed(curve.name, group_name, device) == plain
    check_points(curve.name, group_name, device, "q")


@CURVE
@GROUP
@pytest.mark.parametrize("index", [0, 7, 19])
def test_the_first_point_off_the_curve_is_named(curve: Curve, group_name: str, index: int) -> None:
    device, plain = some_points(curve, group_name, 20)
    size = len(device) // 20
    spoilt = bytearray(device[size : 2 * size] * 20)
    for bad in {index, 19}:
        spoilt[bad * size] ^= 1
    with pytest.raises(EncodingError, match=rf"^q\[{index}\]: off the curve"):
        check_points(curve.name, group_name, bytes(spoilt), "q")
    spoilt = bytearray(plain[size : 2 * size] * 20)
    spoilt[(index + 1) * size - 1] ^= 1
    with pytest.raises(EncodingError, match=rf"^point {index}: off the curve"):
        points_from_uncompressed(curve.name, group_name, bytes(spoilt), lambda i: f"point {i}")


@pytest.mark.parametrize("group_name", ["g1", "g2"])
def test_a_point_outside_the_subgroup_is_refused(group_name: str) -> None:
    curve = CURVES["bls12-381"]
    if group_name == "g1":
        point = off_subgroup(curve.g1)
        device, plain = curve.g1.to_device(point), write_uncompressed(curve, curve.g1, point)
    else:
        pair = off_subgroup(curve.g2)
        device, plain = curve.g2.to_device(pair), write_uncompressed(curve, curve.g2, pair)
    with pytest.raises(EncodingError, match=r"^q\[0\]: wrong subgroup"):
        check_points(curve.name, group_name, device, "q")
    with pytest.raises(EncodingError, match=r"^0: wrong subgroup"):
        points_from_uncompressed(curve.name, group_name, plain, str)


@pytest.mark.parametrize("flags", [0x80, 0x20, 0xC0])
def test_flags_that_an_uncompressed_point_cannot_have_are_refused(flags: int) -> None:
    _, plain = some_points(CURVES["bls12-381"], "g1", 2)
    spoilt = bytearray(plain)
    spoilt[96] |= flags
    with pytest.raises(EncodingError, match=r"^1: "):
        points_from_uncompressed("bls12-381", "g1", bytes(spoilt), str)


def test_half_a_point_is_no_vector_of_points() -> None:
    with pytest.raises(FormatError, match="no multiple"):
        check_points("bn254", "g1", bytes(65), "q")
