"""Witnesses: the value of every wire of a circuit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """The values of all wires, wire 0 (the constant one) first.

    Attributes:
        curve: the name of the curve whose scalar field the values are of.
        values: n_wires x 32 bytes, canonical little-endian; not checked against the modulus
            here: the backend that takes them checks, and names the wire.
    """

    curve: str
    values: bytes | memoryview

    @property
    def n_wires(self) -> int:
        """The number of values."""
        return len(self.values) // 32

    def statement(self, n_public: int) -> bytes:
        """The public inputs as a statement: wires 1..n_public, n_public x 32 bytes."""
        return bytes(self.values[32 : 32 * (n_public + 1)])
