"""Prime fields and their quadratic extensions over Python integers.

The arithmetic of the oracle and of the encodings: obvious, not fast, not constant-time. Elements
are plain values (`int`, or `(c0, c1)` for c0 + c1·u with u² = -1) and always reduced; a field is
the object that knows how to combine them. Nothing here handles a secret on a production path
except the encoding of finished proofs.

Both base fields of this library have q = 3 (mod 4), which `sqrt` uses and demands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeAlias, TypeVar

from partita.groth16.errors import EncodingError

E = TypeVar("E")
Fp2Element: TypeAlias = tuple[int, int]


class Field(ABC, Generic[E]):
    """A field whose elements are values of type E.

    Attributes:
        modulus: the characteristic p.
        prime_size_bytes: bytes of one coordinate over the prime field.
        size_bytes: bytes of one element.
        zero, one: the neutral elements.
    """

    modulus: int
    prime_size_bytes: int
    size_bytes: int
    zero: E
    one: E

    @abstractmethod
    def add(self, x: E, y: E) -> E:
        """x + y."""

    @abstractmethod
    def sub(self, x: E, y: E) -> E:
        """x - y."""

    @abstractmethod
    def mul(self, x: E, y: E) -> E:
        """x · y."""

    @abstractmethod
    def inv(self, x: E) -> E:
        """1 / x; ZeroDivisionError for zero."""

    @abstractmethod
    def sqrt(self, x: E) -> E | None:
        """A square root, or None for a non-residue."""

    @abstractmethod
    def is_larger_root(self, x: E) -> bool:
        """Whether x is lexicographically greater than -x (c1 decides before c0)."""

    @abstractmethod
    def coordinates(self, x: E) -> tuple[int, ...]:
        """The coordinates over the prime field, c0 first."""

    @abstractmethod
    def from_coordinates(self, coordinates: tuple[int, ...]) -> E:
        """The element of these reduced coordinates, c0 first."""

    def neg(self, x: E) -> E:
        """-x."""
        return self.sub(self.zero, x)

    def sqr(self, x: E) -> E:
        """x²."""
        return self.mul(x, x)

    def to_big_endian(self, x: E) -> bytes:
        """Canonical, most significant byte first, the last coordinate (c1) first."""
        return b"".join(
            c.to_bytes(self.prime_size_bytes, "big") for c in reversed(self.coordinates(x))
        )

    def from_big_endian(self, data: bytes, where: str) -> E:
        """The inverse of `to_big_endian`; EncodingError if a coordinate is not below p."""
        size = self.prime_size_bytes
        parts = [data[i : i + size] for i in range(0, self.size_bytes, size)]
        return self._checked([int.from_bytes(p, "big") for p in reversed(parts)], where)

    def to_montgomery(self, x: E) -> bytes:
        """c · 2^(8·prime_size_bytes) mod p for each coordinate, little-endian, c0 first."""
        radix = 1 << (8 * self.prime_size_bytes)
        return b"".join(
            (c * radix % self.modulus).to_bytes(self.prime_size_bytes, "little")
            for c in self.coordinates(x)
        )

    def from_montgomery(self, data: bytes, where: str) -> E:
        """The inverse of `to_montgomery`; EncodingError if a coordinate is not below p."""
        size = self.prime_size_bytes
        parts = [data[i : i + size] for i in range(0, self.size_bytes, size)]
        reduced = self._checked([int.from_bytes(p, "little") for p in parts], where)
        unradix = pow(1 << (8 * size), -1, self.modulus)
        return self.from_coordinates(
            tuple(c * unradix % self.modulus for c in self.coordinates(reduced))
        )

    def _checked(self, coordinates: list[int], where: str) -> E:
        if any(c >= self.modulus for c in coordinates):
            raise EncodingError(where, "a coordinate is not below the modulus")
        return self.from_coordinates(tuple(coordinates))


class PrimeField(Field[int]):
    """The integers modulo a prime."""

    def __init__(self, modulus: int, size_bytes: int) -> None:
        self.modulus = modulus
        self.prime_size_bytes = size_bytes
        self.size_bytes = size_bytes
        self.zero = 0
        self.one = 1

    def add(self, x: int, y: int) -> int:
        """x + y."""
        return (x + y) % self.modulus

    def sub(self, x: int, y: int) -> int:
        """x - y."""
        return (x - y) % self.modulus

    def mul(self, x: int, y: int) -> int:
        """x · y."""
        return x * y % self.modulus

    def inv(self, x: int) -> int:
        """1 / x; ZeroDivisionError for zero."""
        if x == 0:
            raise ZeroDivisionError("zero has no inverse")
        return pow(x, -1, self.modulus)

    def sqrt(self, x: int) -> int | None:
        """A square root, or None for a non-residue; ValueError unless p = 3 (mod 4)."""
        if self.modulus % 4 != 3:
            raise ValueError("square roots are taken in base fields only: p = 3 (mod 4)")
        root = pow(x, (self.modulus + 1) // 4, self.modulus)
        return root if root * root % self.modulus == x else None

    def is_larger_root(self, x: int) -> bool:
        """Whether x > (p - 1) / 2."""
        return x > (self.modulus - 1) // 2

    def coordinates(self, x: int) -> tuple[int, ...]:
        """The element itself."""
        return (x,)

    def from_coordinates(self, coordinates: tuple[int, ...]) -> int:
        """The only coordinate."""
        (x,) = coordinates
        return x


class QuadraticField(Field[Fp2Element]):
    """Fp[u] / (u² + 1) over a prime field with p = 3 (mod 4)."""

    def __init__(self, base: PrimeField) -> None:
        self.base = base
        self.modulus = base.modulus
        self.prime_size_bytes = base.size_bytes
        self.size_bytes = 2 * base.size_bytes
        self.zero = (0, 0)
        self.one = (1, 0)

    def add(self, x: Fp2Element, y: Fp2Element) -> Fp2Element:
        """x + y."""
        return (x[0] + y[0]) % self.modulus, (x[1] + y[1]) % self.modulus

    def sub(self, x: Fp2Element, y: Fp2Element) -> Fp2Element:
        """x - y."""
        return (x[0] - y[0]) % self.modulus, (x[1] - y[1]) % self.modulus

    def mul(self, x: Fp2Element, y: Fp2Element) -> Fp2Element:
        """x · y, with u² = -1."""
        return (
            (x[0] * y[0] - x[1] * y[1]) % self.modulus,
            (x[0] * y[1] + x[1] * y[0]) % self.modulus,
        )

    def inv(self, x: Fp2Element) -> Fp2Element:
        """1 / x = conj(x) / norm(x); ZeroDivisionError for zero."""
        norm = self.base.inv((x[0] * x[0] + x[1] * x[1]) % self.modulus)
        return x[0] * norm % self.modulus, -x[1] * norm % self.modulus

    def sqrt(self, x: Fp2Element) -> Fp2Element | None:
        """A square root by the norm (complex) method, or None for a non-residue.

        Writing (s + t·u)² = x gives s² = (c0 ± sqrt(c0² + c1²)) / 2 and t = c1 / 2s.
        """
        c0, c1 = x
        if c1 == 0:
            real = self.base.sqrt(c0)
            if real is not None:
                return real, 0
            imaginary = self.base.sqrt(-c0 % self.modulus)
            return None if imaginary is None else (0, imaginary)
        norm_root = self.base.sqrt((c0 * c0 + c1 * c1) % self.modulus)
        if norm_root is None:
            return None
        half = (self.modulus + 1) // 2
        s = self.base.sqrt((c0 + norm_root) * half % self.modulus)
        if s is None:
            s = self.base.sqrt((c0 - norm_root) * half % self.modulus)
        if s is None:
            return None
        return s, c1 * half * self.base.inv(s) % self.modulus

    def is_larger_root(self, x: Fp2Element) -> bool:
        """Whether x > -x, c1 compared before c0."""
        return self.base.is_larger_root(x[1] or x[0])

    def coordinates(self, x: Fp2Element) -> tuple[int, ...]:
        """(c0, c1)."""
        return x

    def from_coordinates(self, coordinates: tuple[int, ...]) -> Fp2Element:
        """c0 + c1·u."""
        c0, c1 = coordinates
        return c0, c1
