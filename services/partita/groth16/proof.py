"""Groth16 proofs and their bytes on the wire.

* BLS12-381: 192 bytes, A ‖ B ‖ C compressed, as bellperson writes them;
* BN254: 256 bytes, A ‖ B ‖ C uncompressed big-endian, Fp2 as c1 ‖ c0: the order of EIP-197 and
  of Solidity call data.

A `Proof` is well-formed (points of the right subgroups, none at infinity); whether it proves
anything is the verifier's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from partita.groth16.curves import BLS12_381, Curve, curve_named
from partita.groth16.encodings import (
    has_flags,
    read_compressed,
    read_uncompressed,
    write_compressed,
    write_uncompressed,
)
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.fields import Fp2Element

P = TypeVar("P")


def proof_size_bytes(curve: Curve) -> int:
    """The exact length of a proof on the wire: 192 (BLS12-381) or 256 (BN254)."""
    g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
    uncompressed = 2 * g1 + g2
    return uncompressed // 2 if curve is BLS12_381 else uncompressed


@dataclass(frozen=True, slots=True)
class Proof:
    """The three points of a Groth16 proof, affine, as Python integers.

    Attributes:
        curve: the name of the curve.
        a: a point of G1.
        b: a point of G2, coordinates (c0, c1).
        c: a point of G1.
    """

    curve: str
    a: tuple[int, int]
    b: tuple[Fp2Element, Fp2Element]
    c: tuple[int, int]

    @classmethod
    def from_device(cls, curve_name: str, a: bytes, b: bytes, c: bytes) -> Proof:
        """A proof of points in device form, as a backend returns them.

        Raises:
            EncodingError: a point at infinity or a coordinate not below q.
        """
        curve = curve_named(curve_name)
        return cls(
            curve_name,
            _finite(curve.g1.from_device(a, "proof.a"), "proof.a"),
            _finite(curve.g2.from_device(b, "proof.b"), "proof.b"),
            _finite(curve.g1.from_device(c, "proof.c"), "proof.c"),
        )

    @classmethod
    def from_bytes(cls, curve_name: str, data: bytes) -> Proof:
        """The proof of its wire form.

        Raises:
            FormatError: another length than `proof_size_bytes`.
            EncodingError: names proof.a, proof.b or proof.c: off the curve, outside the subgroup,
                at infinity, or not the canonical encoding.
        """
        curve = curve_named(curve_name)
        if len(data) != proof_size_bytes(curve):
            raise FormatError(
                "proof",
                f"{len(data)} bytes, expected {proof_size_bytes(curve)} for {curve_name}",
            )
        if has_flags(curve):
            g1, g2 = curve.g1.field.size_bytes, curve.g2.field.size_bytes
            a = read_compressed(curve.g1, data[:g1], "proof.a")
            b = read_compressed(curve.g2, data[g1 : g1 + g2], "proof.b")
            c = read_compressed(curve.g1, data[g1 + g2 :], "proof.c")
        else:
            g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
            a = read_uncompressed(curve, curve.g1, data[:g1], "proof.a")
            b = read_uncompressed(curve, curve.g2, data[g1 : g1 + g2], "proof.b")
            c = read_uncompressed(curve, curve.g1, data[g1 + g2 :], "proof.c")
        return cls(curve_name, _finite(a, "proof.a"), _finite(b, "proof.b"), _finite(c, "proof.c"))

    def to_bytes(self) -> bytes:
        """The wire form: `proof_size_bytes`."""
        curve = curve_named(self.curve)
        if has_flags(curve):
            return (
                write_compressed(curve.g1, self.a)
                + write_compressed(curve.g2, self.b)
                + write_compressed(curve.g1, self.c)
            )
        return (
            write_uncompressed(curve, curve.g1, self.a)
            + write_uncompressed(curve, curve.g2, self.b)
            + write_uncompressed(curve, curve.g1, self.c)
        )


def _finite(point: P | None, where: str) -> P:
    if point is None:
        raise EncodingError(where, "the point at infinity")
    return point
