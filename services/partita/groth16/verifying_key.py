"""Verifying keys, their one binary form and their digest.

Binary form, both curves: α1, β2, γ2, δ2, u32 n little-endian, then n points IC; every point
uncompressed, big-endian, Fp2 as c1 ‖ c0, in the dialect of its curve (`encodings`). n is the
number of public inputs plus one. Digests are over these bytes, never over a file's text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

from partita.groth16.curves import curve_named
from partita.groth16.encodings import read_uncompressed, write_uncompressed
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.fields import Fp2Element
from partita.groth16.keys import ProvingKey
from partita.groth16.points import Group, PointG1

E = TypeVar("E")

_SOURCE = "verifying key"


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """What a verifier needs, affine points as Python integers.

    Attributes:
        curve: the name of the curve.
        alpha_g1, beta_g2, gamma_g2, delta_g2: never at infinity.
        ic: n_public + 1 points of G1, the constant's first; infinity is allowed.
    """

    curve: str
    alpha_g1: tuple[int, int]
    beta_g2: tuple[Fp2Element, Fp2Element]
    gamma_g2: tuple[Fp2Element, Fp2Element]
    delta_g2: tuple[Fp2Element, Fp2Element]
    ic: tuple[PointG1, ...]

    @property
    def n_public(self) -> int:
        """The number of values of a statement."""
        return len(self.ic) - 1

    @classmethod
    def of_proving_key(cls, key: ProvingKey) -> VerifyingKey:
        """The verifying key that belongs to a proving key; checks neither curve nor subgroup."""
        curve = curve_named(key.curve)
        return cls(
            key.curve,
            _single(curve.g1, key.alpha_g1, "alpha_g1"),
            _single(curve.g2, key.beta_g2, "beta_g2"),
            _single(curve.g2, key.gamma_g2, "gamma_g2"),
            _single(curve.g2, key.delta_g2, "delta_g2"),
            tuple(curve.g1.each_from_device(key.ic, "ic")),
        )

    @classmethod
    def from_bytes(
        cls, curve_name: str, data: bytes, *, check_subgroups: bool = True
    ) -> VerifyingKey:
        """The key of its binary form.

        Args:
            curve_name: the curve, which the bytes do not state.
            data: the whole form, nothing after it.
            check_subgroups: False for bytes whose digest is known: saves milliseconds a point.

        Raises:
            FormatError: truncated, trailing bytes, no IC.
            EncodingError: names the point that is malformed.
        """
        curve = curve_named(curve_name)
        g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
        head = g1 + 3 * g2
        if len(data) < head + 4:
            raise FormatError(_SOURCE, f"{len(data)} bytes, expected at least {head + 4 + g1}")
        n_ic = int.from_bytes(data[head : head + 4], "little")
        if n_ic == 0:
            raise FormatError(_SOURCE, "no IC point; there is at least one", section="n")
        expected = head + 4 + n_ic * g1
        if len(data) != expected:
            raise FormatError(
                _SOURCE, f"{len(data)} bytes, expected {expected} for {n_ic} points IC"
            )

        def read(group: Group[E], offset: int, name: str) -> tuple[E, E] | None:
            part = data[offset : offset + group.point_size_bytes]
            return read_uncompressed(
                curve, group, part, f"{_SOURCE} {name}", check_subgroup=check_subgroups
            )

        return cls(
            curve_name,
            _finite(read(curve.g1, 0, "alpha_g1"), "alpha_g1"),
            _finite(read(curve.g2, g1, "beta_g2"), "beta_g2"),
            _finite(read(curve.g2, g1 + g2, "gamma_g2"), "gamma_g2"),
            _finite(read(curve.g2, g1 + 2 * g2, "delta_g2"), "delta_g2"),
            tuple(read(curve.g1, head + 4 + i * g1, f"ic[{i}]") for i in range(n_ic)),
        )

    def to_bytes(self) -> bytes:
        """The binary form."""
        curve = curve_named(self.curve)
        parts = [write_uncompressed(curve, curve.g1, self.alpha_g1)]
        parts += [
            write_uncompressed(curve, curve.g2, point)
            for point in (self.beta_g2, self.gamma_g2, self.delta_g2)
        ]
        parts.append(len(self.ic).to_bytes(4, "little"))
        parts += [write_uncompressed(curve, curve.g1, point) for point in self.ic]
        return b"".join(parts)

    def sha256(self) -> bytes:
        """The digest of the binary form: 32 bytes."""
        return hashlib.sha256(self.to_bytes()).digest()


def _single(group: Group[E], data: bytes, name: str) -> tuple[E, E]:
    return _finite(group.from_device(data, f"{_SOURCE} {name}"), name)


def _finite(point: tuple[E, E] | None, name: str) -> tuple[E, E]:
    if point is None:
        raise EncodingError(f"{_SOURCE} {name}", "the point at infinity")
    return point
