"""A trusted set-up of one's own, for development: the proving key of a constraint system.

Never for production: whoever runs it, or knows the seed of one that was run with a seed, can make
proofs of false statements that verify. A key for production comes from a ceremony in which at
least one of many people forgot their secret.

The secrets are made, used and overwritten in native code; Python never sees them.

Source: Groth, eprint 2016/260, section 3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.key_checks import check_system
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.native import NativeSetup, ToxicWaste

if TYPE_CHECKING:
    from partita.groth16.r1cs import R1cs

__all__ = ["ToxicWaste", "set_up"]


def set_up(r1cs: R1cs, family: KeyFamily, toxic_waste: ToxicWaste) -> ProvingKey:
    """Make the proving key of a system. INSECURE: see the module.

    Args:
        r1cs: the system.
        family: the conventions of the key.
        toxic_waste: of the system's curve; used up and overwritten.

    Raises:
        MismatchError: the system needs a larger domain than the curve's field has.
        FormatError, EncodingError: the system is malformed; see `check_system`.
        ResourceError: memory was refused.
    """
    check_system(r1cs)
    limit = curve_named(r1cs.curve).max_domain_size(family)
    n_rows = r1cs.n_rows + r1cs.n_public + 1
    if n_rows > limit:
        raise MismatchError("number of constraints and public inputs", f"at most {limit}", n_rows)
    setup = NativeSetup(r1cs, family, toxic_waste)
    matrix_a, matrix_b, matrix_c, dictionary = _bound(r1cs)
    return ProvingKey(
        curve=r1cs.curve,
        family=family,
        n_public=r1cs.n_public,
        n_wires=r1cs.n_wires,
        domain_size=setup.domain_size,
        ic=setup.ic(),
        queries={query: setup.query(query) for query in Query},
        matrix_a=matrix_a,
        matrix_b=matrix_b,
        matrix_c=matrix_c if family is KeyFamily.BELLPERSON else None,
        dictionary=dictionary,
        **setup.points(),
    )


def _bound(r1cs: R1cs) -> tuple[SparseMatrix, SparseMatrix, SparseMatrix, bytes]:
    """The matrices with a row for the constant and each public wire, which A binds by a one."""
    n_bound = r1cs.n_public + 1
    dictionary = r1cs.dictionary
    one = (1).to_bytes(SCALAR_SIZE_BYTES, "little")
    known = np.frombuffer(dictionary, dtype=np.dtype((np.void, SCALAR_SIZE_BYTES)))
    found = np.flatnonzero(known == np.frombuffer(one, dtype=known.dtype)[0])
    if len(found):
        index = int(found[0])
    else:
        index = len(known)
        dictionary += one
    a = r1cs.matrix_a
    matrix_a = SparseMatrix(
        row_ptr=np.concatenate(
            [a.row_ptr, a.row_ptr[-1] + np.arange(1, n_bound + 1, dtype=np.uint64)]
        ),
        wire=np.concatenate([a.wire, np.arange(n_bound, dtype=np.uint32)]),
        coefficient=np.concatenate([a.coefficient, np.full(n_bound, index, dtype=np.uint32)]),
    )
    return matrix_a, _padded(r1cs.matrix_b, n_bound), _padded(r1cs.matrix_c, n_bound), dictionary


def _padded(matrix: SparseMatrix, n_rows: int) -> SparseMatrix:
    """The matrix with empty rows behind it."""
    return SparseMatrix(
        row_ptr=np.concatenate([matrix.row_ptr, np.full(n_rows, matrix.row_ptr[-1])]),
        wire=matrix.wire,
        coefficient=matrix.coefficient,
    )
