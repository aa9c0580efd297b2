"""Constraint systems with the rows that Groth16 needs for the statement.

Behind the constraints there is one row x · 0 = 0 for the constant wire and each public one, so that
the polynomials of A of these wires are independent of each other. snarkjs and bellperson both
append them; matrix A alone has an entry there.

Sources: snarkjs 0.7, `zkey_new.js`; bellperson 0.27, `src/groth16/generator.rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from partita.groth16.curves import SCALAR_SIZE_BYTES
from partita.groth16.keys import SparseMatrix

if TYPE_CHECKING:
    from partita.groth16.r1cs import R1cs

_ONE: Final = (1).to_bytes(SCALAR_SIZE_BYTES, "little")


def with_input_rows(r1cs: R1cs) -> tuple[SparseMatrix, SparseMatrix, SparseMatrix, bytes]:
    """The matrices with the input rows, and a dictionary that has a one.

    Args:
        r1cs: as its author wrote it, wires in the order constant, public, private.

    Returns:
        A, B and C of n_rows + n_public + 1 rows, and their dictionary.
    """
    n_inputs = r1cs.n_public + 1
    dictionary = r1cs.dictionary
    known = np.frombuffer(dictionary, dtype=np.dtype((np.void, SCALAR_SIZE_BYTES)))
    found = np.flatnonzero(known == np.frombuffer(_ONE, dtype=known.dtype)[0])
    if len(found):
        one = int(found[0])
    else:
        one = len(known)
        dictionary += _ONE
    a = r1cs.matrix_a
    matrix_a = SparseMatrix(
        row_ptr=np.concatenate(
            [a.row_ptr, a.row_ptr[-1] + np.arange(1, n_inputs + 1, dtype=np.uint64)]
        ),
        wire=np.concatenate([a.wire, np.arange(n_inputs, dtype=np.uint32)]),
        coefficient=np.concatenate([a.coefficient, np.full(n_inputs, one, dtype=np.uint32)]),
    )
    matrix_b, matrix_c = (_padded(matrix, n_inputs) for matrix in (r1cs.matrix_b, r1cs.matrix_c))
    return matrix_a, matrix_b, matrix_c, dictionary


def _padded(matrix: SparseMatrix, n_rows: int) -> SparseMatrix:
    """The matrix with empty rows behind it."""
    return SparseMatrix(
        row_ptr=np.concatenate([matrix.row_ptr, np.full(n_rows, matrix.row_ptr[-1])]),
        wire=matrix.wire,
        coefficient=matrix.coefficient,
    )
