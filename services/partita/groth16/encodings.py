"""Points as bytes on the wire and in files.

Two dialects, big-endian with c1 before c0 in both:

* BLS12-381: the Zcash form. Three flags in the top bits of the first byte: 0x80 compressed,
  0x40 infinity, 0x20 the larger y (compressed only). Compressed is x alone.
* BN254: the form of EIP-197: uncompressed, no flags, infinity all zero.

Reading is strict: one byte string per point, no unused flag, no coordinate >= q, on the curve,
and (unless the caller vouches) in the subgroup.

Source of the Zcash form: IETF draft pairing-friendly-curves, appendix C.
"""

from __future__ import annotations

from typing import TypeVar

from partita.groth16.curves import BLS12_381, Curve
from partita.groth16.errors import EncodingError
from partita.groth16.points import Group

E = TypeVar("E")

_COMPRESSED = 0x80
_INFINITY = 0x40
_LARGER_Y = 0x20
_FLAGS = _COMPRESSED | _INFINITY | _LARGER_Y


def has_flags(curve: Curve) -> bool:
    """Whether the dialect of this curve keeps flags in the top bits (and so can compress)."""
    return curve is BLS12_381


def write_uncompressed(curve: Curve, group: Group[E], point: tuple[E, E] | None) -> bytes:
    """x then y: group.point_size_bytes."""
    if point is None:
        first = _INFINITY if has_flags(curve) else 0
        return bytes([first]) + bytes(group.point_size_bytes - 1)
    return group.field.to_big_endian(point[0]) + group.field.to_big_endian(point[1])


def read_uncompressed(
    curve: Curve, group: Group[E], data: bytes, where: str, *, check_subgroup: bool = True
) -> tuple[E, E] | None:
    """The inverse of `write_uncompressed`.

    Args:
        curve: whose dialect the bytes are in.
        group: the group the point belongs to.
        data: exactly group.point_size_bytes.
        where: the name of the point in errors.
        check_subgroup: False only for bytes whose digest is known and trusted.

    Raises:
        EncodingError: whatever is not the one encoding of a point of the group.
    """
    _check_length(data, group.point_size_bytes, where)
    if has_flags(curve) and data[0] & _FLAGS:
        if data[0] & _FLAGS != _INFINITY:
            raise EncodingError(where, f"flags 0x{data[0] & _FLAGS:02x} on an uncompressed point")
        if data[0] != _INFINITY or any(data[1:]):
            raise EncodingError(where, "the point at infinity with other bits set")
        return None
    if not has_flags(curve) and not any(data):
        return None
    half = group.field.size_bytes
    point = (
        group.field.from_big_endian(data[:half], where),
        group.field.from_big_endian(data[half:], where),
    )
    _check(group, point, where, check_subgroup=check_subgroup)
    return point


def write_compressed(group: Group[E], point: tuple[E, E] | None) -> bytes:
    """x with flags in the Zcash form: group.field.size_bytes."""
    if point is None:
        return bytes([_COMPRESSED | _INFINITY]) + bytes(group.field.size_bytes - 1)
    x, y = point
    encoded = bytearray(group.field.to_big_endian(x))
    encoded[0] |= _COMPRESSED | (_LARGER_Y if group.field.is_larger_root(y) else 0)
    return bytes(encoded)


def read_compressed(
    group: Group[E], data: bytes, where: str, *, check_subgroup: bool = True
) -> tuple[E, E] | None:
    """The inverse of `write_compressed`; EncodingError as `read_uncompressed`."""
    _check_length(data, group.field.size_bytes, where)
    flags = data[0] & _FLAGS
    if not flags & _COMPRESSED:
        raise EncodingError(where, "the flag of a compressed point (0x80) is missing")
    if flags & _INFINITY:
        if data[0] != _COMPRESSED | _INFINITY or any(data[1:]):
            raise EncodingError(where, "the point at infinity with other bits set")
        return None
    x = group.field.from_big_endian(bytes([data[0] & ~_FLAGS]) + data[1:], where)
    y = group.field.sqrt(group.right_side(x))
    if y is None:
        raise EncodingError(where, "the point is off the curve")
    if group.field.is_larger_root(y) != bool(flags & _LARGER_Y):
        y = group.field.neg(y)
    _check(group, (x, y), where, check_subgroup=check_subgroup)
    return x, y


def _check_length(data: bytes, expected: int, where: str) -> None:
    if len(data) != expected:
        raise EncodingError(where, f"{len(data)} bytes, expected {expected}")


def _check(group: Group[E], point: tuple[E, E], where: str, *, check_subgroup: bool) -> None:
    if check_subgroup:
        group.check(point, where)
    elif not group.is_on_curve(point):
        raise EncodingError(where, "the point is off the curve")
