"""Points on the wire: one encoding a point, every other byte string refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from partita.groth16.curves import BLS12_381, BN254, CURVES, Curve
from partita.groth16.encodings import (
    read_compressed,
    read_uncompressed,
    write_compressed,
    write_uncompressed,
)
from partita.groth16.errors import EncodingError
from partita.groth16.points import Group
from tests.groth16.test_curves import off_subgroup

CASES: list[Any] = [
    pytest.param(c, g, id=f"{c.name}-{g.name}") for c in CURVES.values() for g in (c.g1, c.g2)
]
UNCOMPRESSED = pytest.mark.parametrize(("curve", "group"), CASES)
COMPRESSED = pytest.mark.parametrize("group", [BLS12_381.g1, BLS12_381.g2], ids=["g1", "g2"])


def _refused(curve: Curve, group: Group[Any], data: bytes, text: str) -> None:
    with pytest.raises(EncodingError, match=f"^p: .*{text}"):
        read_uncompressed(curve, group, data, "p")


@UNCOMPRESSED
def test_uncompressed_points_round_trip(curve: Curve, group: Group[Any]) -> None:
    for point in (group.generator, None, group.mul(group.generator, -5)):
        data = write_uncompressed(curve, group, point)
        assert len(data) == group.point_size_bytes
        assert read_uncompressed(curve, group, data, "p") == point


@UNCOMPRESSED
def test_malformed_uncompressed_points_are_refused(curve: Curve, group: Group[Any]) -> None:
    good = write_uncompressed(curve, group, group.generator)
    _refused(curve, group, good[:-1], f"{len(good) - 1} bytes, expected {len(good)}")
    _refused(curve, group, good + b"\0", f"{len(good) + 1} bytes")
    _refused(curve, group, good[:-1] + bytes([good[-1] ^ 1]), "off the curve")
    size = curve.fq.size_bytes
    _refused(curve, group, good[:-size] + curve.fq.modulus.to_bytes(size, "big"), "modulus")


@UNCOMPRESSED
def test_the_subgroup_is_checked_unless_the_caller_vouches(curve: Curve, group: Group[Any]) -> None:
    if group.cofactor == 1:
        assert curve is BN254
        return
    point = off_subgroup(group)
    data = write_uncompressed(curve, group, point)
    _refused(curve, group, data, "subgroup")
    assert read_uncompressed(curve, group, data, "p", check_subgroup=False) == point
    broken = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(EncodingError, match="off the curve"):
        read_uncompressed(curve, group, broken, "p", check_subgroup=False)


@COMPRESSED
def test_uncompressed_zcash_points_carry_no_other_flag_than_infinity(group: Group[Any]) -> None:
    good = bytearray(write_uncompressed(BLS12_381, group, group.generator))
    for flag in (0x80, 0x20, 0xC0):
        _refused(BLS12_381, group, bytes([good[0] | flag]) + bytes(good[1:]), "flags 0x")
    infinity = write_uncompressed(BLS12_381, group, None)
    _refused(BLS12_381, group, infinity[:-1] + b"\1", "infinity with other bits")
    _refused(BLS12_381, group, bytes([0x41]) + infinity[1:], "infinity with other bits")
    _refused(BLS12_381, group, bytes(len(infinity)), "off the curve")


@COMPRESSED
def test_compressed_points_round_trip_with_either_root(group: Group[Any]) -> None:
    for point in (group.generator, group.neg(group.generator), None):
        data = write_compressed(group, point)
        assert len(data) == group.field.size_bytes
        assert read_compressed(group, data, "p") == point


def test_the_compressed_generator_is_the_published_one() -> None:
    assert write_compressed(BLS12_381.g1, BLS12_381.g1.generator).hex() == (
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
        "6c55e83ff97a1aeffb3af00adb22c6bb"
    )
    assert write_compressed(BLS12_381.g2, BLS12_381.g2.generator).hex() == (
        "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049"
        "334cf11213945d57e5ac7d055d042b7e024aa2b2f08f0a91260805272dc51051"
        "c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    )


@COMPRESSED
def test_malformed_compressed_points_are_refused(group: Group[Any]) -> None:
    def refused(data: bytes, text: str) -> None:
        with pytest.raises(EncodingError, match=f"^p: .*{text}"):
            read_compressed(group, data, "p")

    good = write_compressed(group, group.generator)
    refused(good[:-1], "bytes, expected")
    refused(bytes([good[0] & 0x7F]) + good[1:], "0x80")
    infinity = write_compressed(group, None)
    refused(infinity[:-1] + b"\1", "infinity with other bits")
    refused(bytes([infinity[0] | 0x20]) + infinity[1:], "infinity with other bits")
    refused(write_compressed(group, off_subgroup(group)), "subgroup")
    modulus = group.field.modulus.to_bytes(48, "big")
    refused(bytes([modulus[0] | 0x80]) + modulus[1:] + good[48:], "modulus")
    x = group.field.one
    while group.field.sqrt(group.right_side(x)) is not None:
        x = group.field.add(x, group.field.one)
    data = bytearray(group.field.to_big_endian(x))
    data[0] |= 0x80
    refused(bytes(data), "off the curve")
