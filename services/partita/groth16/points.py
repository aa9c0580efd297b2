"""Groups of points on short Weierstrass curves y² = x³ + b over Python integers.

An affine point is `(x, y)`, or None for the point at infinity. The arithmetic is the oracle's:
Jacobian double-and-add, naive sums, the subgroup check by multiplying with the order. It knows
one encoding, the *device form* of keys and backends: x then y, coordinates in Montgomery form,
little-endian, Fp2 as c0 then c1, infinity all zero.

Formulas: Bernstein and Lange, Explicit-Formulas Database, dbl-2009-l and add-2007-bl (a = 0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from partita.groth16.errors import EncodingError
from partita.groth16.fields import Field, Fp2Element

E = TypeVar("E")
PointG1: TypeAlias = tuple[int, int] | None
PointG2: TypeAlias = tuple[Fp2Element, Fp2Element] | None


@dataclass(frozen=True, eq=False)
class Group(Generic[E]):
    """The subgroup of prime order of a curve y² = x³ + b.

    Attributes:
        name: "g1" or "g2", as backends name it.
        field: the field of the coordinates.
        b: the constant of the curve.
        generator: an affine point of the subgroup.
        order: the prime order r of the subgroup.
        cofactor: points of the curve divided by r; 1 where the curve is the subgroup.
    """

    name: str
    field: Field[E]
    b: E
    generator: tuple[E, E]
    order: int
    cofactor: int

    @property
    def point_size_bytes(self) -> int:
        """Bytes of one affine point in device form and in uncompressed form."""
        return 2 * self.field.size_bytes

    def right_side(self, x: E) -> E:
        """x³ + b."""
        f = self.field
        return f.add(f.mul(f.sqr(x), x), self.b)

    def is_on_curve(self, point: tuple[E, E] | None) -> bool:
        """Whether the point satisfies the equation; infinity does."""
        return point is None or self.field.sqr(point[1]) == self.right_side(point[0])

    def is_in_subgroup(self, point: tuple[E, E] | None) -> bool:
        """Whether a point of the curve has an order that divides r."""
        return self.cofactor == 1 or self._multiple(point, self.order) is None

    def check(self, point: tuple[E, E] | None, where: str) -> None:
        """Raise EncodingError naming `where` unless the point is on the curve, in the subgroup."""
        if not self.is_on_curve(point):
            raise EncodingError(where, "the point is off the curve")
        if not self.is_in_subgroup(point):
            raise EncodingError(where, "the point is outside the subgroup of order r")

    def neg(self, point: tuple[E, E] | None) -> tuple[E, E] | None:
        """-P."""
        return None if point is None else (point[0], self.field.neg(point[1]))

    def add(self, p: tuple[E, E] | None, q: tuple[E, E] | None) -> tuple[E, E] | None:
        """P + Q."""
        return self._affine(self._add(self._jacobian(p), self._jacobian(q)))

    def mul(self, point: tuple[E, E] | None, scalar: int) -> tuple[E, E] | None:
        """scalar · P for any integer; the scalar is reduced by r, so P must be in the subgroup."""
        return self._multiple(point, scalar % self.order)

    def sum_of_products(
        self, terms: Iterable[tuple[tuple[E, E] | None, int]]
    ) -> tuple[E, E] | None:
        """The sum of scalar · P over pairs (P, scalar): a naive multi-scalar multiplication."""
        total = self._jacobian(None)
        for point, scalar in terms:
            total = self._add(total, self._jacobian(self.mul(point, scalar)))
        return self._affine(total)

    def to_device(self, point: tuple[E, E] | None) -> bytes:
        """The device form: point_size_bytes."""
        if point is None:
            return bytes(self.point_size_bytes)
        return self.field.to_montgomery(point[0]) + self.field.to_montgomery(point[1])

    def from_device(self, data: bytes | memoryview, where: str) -> tuple[E, E] | None:
        """The point of a device form of exactly point_size_bytes; not checked against the curve.

        Raises:
            EncodingError: the length is wrong, or a coordinate is not below the modulus.
        """
        raw = bytes(data)
        if len(raw) != self.point_size_bytes:
            raise EncodingError(where, f"{len(raw)} bytes, expected {self.point_size_bytes}")
        if not any(raw):
            return None
        half = self.field.size_bytes
        return (
            self.field.from_montgomery(raw[:half], where),
            self.field.from_montgomery(raw[half:], where),
        )

    def each_from_device(
        self, data: bytes | memoryview, where: str
    ) -> Iterator[tuple[E, E] | None]:
        """The points of concatenated device forms; `where[i]` names point i in errors."""
        size = self.point_size_bytes
        if len(data) % size:
            raise EncodingError(where, f"{len(data)} bytes is no multiple of {size}")
        for i in range(len(data) // size):
            yield self.from_device(data[i * size : (i + 1) * size], f"{where}[{i}]")

    def _multiple(self, point: tuple[E, E] | None, scalar: int) -> tuple[E, E] | None:
        base = self._jacobian(point)
        total = self._jacobian(None)
        for bit in f"{scalar:b}":
            total = self._double(total)
            if bit == "1":
                total = self._add(total, base)
        return self._affine(total)

    def _jacobian(self, point: tuple[E, E] | None) -> tuple[E, E, E]:
        one, zero = self.field.one, self.field.zero
        return (one, one, zero) if point is None else (point[0], point[1], one)

    def _affine(self, point: tuple[E, E, E]) -> tuple[E, E] | None:
        f = self.field
        x, y, z = point
        if z == f.zero:
            return None
        z_inv = f.inv(z)
        z_inv2 = f.sqr(z_inv)
        return f.mul(x, z_inv2), f.mul(y, f.mul(z_inv2, z_inv))

    def _double(self, point: tuple[E, E, E]) -> tuple[E, E, E]:
        f = self.field
        x, y, z = point
        a, b = f.sqr(x), f.sqr(y)
        c = f.sqr(b)
        half_d = f.sub(f.sub(f.sqr(f.add(x, b)), a), c)
        d = f.add(half_d, half_d)
        e = f.add(f.add(a, a), a)
        x3 = f.sub(f.sqr(e), f.add(d, d))
        c2 = f.add(c, c)
        c4 = f.add(c2, c2)
        y3 = f.sub(f.mul(e, f.sub(d, x3)), f.add(c4, c4))
        yz = f.mul(y, z)
        return x3, y3, f.add(yz, yz)

    def _add(self, p: tuple[E, E, E], q: tuple[E, E, E]) -> tuple[E, E, E]:
        f = self.field
        x1, y1, z1 = p
        x2, y2, z2 = q
        if z1 == f.zero:
            return q
        if z2 == f.zero:
            return p
        z1z1, z2z2 = f.sqr(z1), f.sqr(z2)
        u1, u2 = f.mul(x1, z2z2), f.mul(x2, z1z1)
        s1, s2 = f.mul(y1, f.mul(z2, z2z2)), f.mul(y2, f.mul(z1, z1z1))
        if u1 == u2:
            return self._double(p) if s1 == s2 else self._jacobian(None)
        h = f.sub(u2, u1)
        h2 = f.add(h, h)
        i = f.sqr(h2)
        j = f.mul(h, i)
        r = f.sub(s2, s1)
        r = f.add(r, r)
        v = f.mul(u1, i)
        x3 = f.sub(f.sub(f.sqr(r), j), f.add(v, v))
        s1j = f.mul(s1, j)
        y3 = f.sub(f.mul(r, f.sub(v, x3)), f.add(s1j, s1j))
        z3 = f.mul(f.sub(f.sub(f.sqr(f.add(z1, z2)), z1z1), z2z2), h)
        return x3, y3, z3
