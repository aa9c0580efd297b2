"""Rank-1 constraint systems: rows of (A·w)(B·w) = C·w over the scalar field of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partita.groth16.keys import SparseMatrix


@dataclass(frozen=True, slots=True)
class R1cs:
    """A constraint system as its author wrote it: no rows are added for public inputs.

    Attributes:
        curve: the name of the curve whose scalar field the values are of.
        n_public_outputs, n_public_inputs, n_private_inputs: counts of wires in this order after
            the constant wire 0; a statement holds the outputs, then the inputs.
        n_wires: all wires, the constant included.
        matrix_a, matrix_b, matrix_c: n_rows x n_wires each.
        dictionary: n_coefficients x 32 bytes, canonical little-endian scalars.
    """

    curve: str
    n_public_outputs: int
    n_public_inputs: int
    n_private_inputs: int
    n_wires: int
    matrix_a: SparseMatrix
    matrix_b: SparseMatrix
    matrix_c: SparseMatrix
    dictionary: bytes

    @property
    def n_public(self) -> int:
        """The length of a statement."""
        return self.n_public_outputs + self.n_public_inputs

    @property
    def n_rows(self) -> int:
        """The number of constraints."""
        return self.matrix_a.n_rows
