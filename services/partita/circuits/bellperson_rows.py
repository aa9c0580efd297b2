"""Constraint systems as bellperson's keys are made from them.

bellperson appends one row x_i · 0 = 0 for each input, the constant included, behind the
constraints; its generator leaves the points of wires out that no row of A (or of B) names. Both
follow from the R1CS alone, and so do the counts of a parameter file.

Source: bellperson 0.27, `src/groth16/generator.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.input_rows import with_input_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from partita.groth16.keys import SparseMatrix
    from partita.groth16.r1cs import R1cs

_CHUNK: Final = 1 << 18
"""Entries that are sorted at once, or one row."""


@dataclass(frozen=True, slots=True)
class BellpersonRows:
    """A constraint system with its input rows.

    Attributes:
        matrix_a, matrix_b, matrix_c: n_constraints + n_public + 1 rows each.
        dictionary: their coefficients, canonical.
        domain_size: the power of two that holds the rows.
        in_a, in_b: shape (n_wires,), bool: which wires the rows of A and of B name.
    """

    matrix_a: SparseMatrix
    matrix_b: SparseMatrix
    matrix_c: SparseMatrix
    dictionary: bytes
    domain_size: int
    in_a: npt.NDArray[np.bool_]
    in_b: npt.NDArray[np.bool_]


def bellperson_rows(r1cs: R1cs) -> BellpersonRows:
    """Append the input rows and find the wires that occur.

    Args:
        r1cs: as its author wrote it, wires in the order constant, public, private.
    """
    matrix_a, matrix_b, matrix_c, dictionary = with_input_rows(r1cs)
    return BellpersonRows(
        matrix_a=matrix_a,
        matrix_b=matrix_b,
        matrix_c=matrix_c,
        dictionary=dictionary,
        domain_size=1 << (matrix_a.n_rows - 1).bit_length(),
        in_a=_occurring(matrix_a, dictionary, r1cs),
        in_b=_occurring(r1cs.matrix_b, dictionary, r1cs),
    )


def _occurring(matrix: SparseMatrix, dictionary: bytes, r1cs: R1cs) -> npt.NDArray[np.bool_]:
    """The wires with a coefficient that is not zero in some row.

    A wire that a row names several times has the sum of its coefficients there.
    """
    occurring = np.zeros(r1cs.n_wires, dtype=np.bool_)
    values = np.frombuffer(dictionary, dtype="<u8").reshape(-1, 4)
    is_zero = np.logical_not(np.any(values, axis=1))
    modulus = curve_named(r1cs.curve).r
    first, row_ptr = 0, matrix.row_ptr.astype(np.int64)
    while first < matrix.n_rows:
        last = int(np.searchsorted(row_ptr, row_ptr[first] + _CHUNK, side="right")) - 1
        last = max(last, first + 1)
        entries = slice(int(row_ptr[first]), int(row_ptr[last]))
        wire, coefficient = matrix.wire[entries], matrix.coefficient[entries]
        row = np.repeat(np.arange(last - first), np.diff(row_ptr[first : last + 1]))
        first = last
        order = np.lexsort((wire, row))
        row, wire, coefficient = row[order], wire[order], coefficient[order]
        again = np.flatnonzero((row[1:] == row[:-1]) & (wire[1:] == wire[:-1])) + 1
        repeated = np.zeros(len(wire), dtype=np.bool_)
        repeated[again] = True
        repeated[again - 1] = True
        occurring[wire[~repeated & ~is_zero[coefficient]]] = True
        sums: dict[tuple[int, int], int] = {}
        for i in np.flatnonzero(repeated).tolist():
            at = SCALAR_SIZE_BYTES * int(coefficient[i])
            value = int.from_bytes(dictionary[at : at + SCALAR_SIZE_BYTES], "little")
            key = int(row[i]), int(wire[i])
            sums[key] = (sums.get(key, 0) + value) % modulus
        for (_, summed), value in sums.items():
            if value:
                occurring[summed] = True
    return occurring
