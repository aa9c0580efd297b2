"""The shape of keys and systems: every count, length and index that a backend relies on.

No point arithmetic: whether points lie on their curves is asked of the backend when it loads the
key. A key that passes here can be indexed without further thought.
"""

from __future__ import annotations

import numpy as np

from partita.groth16.backend import KeyHead
from partita.groth16.curves import SCALAR_SIZE_BYTES, Curve, curve_named
from partita.groth16.errors import EncodingError, FormatError, MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness

_SOURCE = "proving key"


def check_shape(key: ProvingKey) -> None:
    """Check counts, lengths and indexes of a key against each other.

    Raises:
        MismatchError: an unknown curve, a length that differs from its count, a matrix that does
            not fit the domain, a C matrix that the family does not have.
        FormatError: row pointers that do not ascend, an index out of range.
        EncodingError: names the coefficient of the dictionary that is not below r.
    """
    curve = curve_named(key.curve)
    if not 0 <= key.n_public < key.n_wires:
        raise MismatchError("number of public inputs", f"0..{key.n_wires - 1}", key.n_public)
    domain, limit = key.domain_size, curve.max_domain_size(key.family)
    if domain < 1 or domain & (domain - 1) or domain > limit:
        raise MismatchError("domain size", f"a power of two up to {limit}", domain)
    g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
    head = KeyHead.of(key)
    for query in Query:
        size = g2 if query is Query.B2 else g1
        found = len(key.queries[query])
        expected = head.count(query) * size
        if found != expected:
            raise MismatchError(f"bytes of query {query.value}", expected, found)
    _check_length("ic", key.ic, (key.n_public + 1) * g1)
    for name in ("alpha_g1", "beta_g1", "delta_g1"):
        _check_length(name, getattr(key, name), g1)
    for name in ("beta_g2", "gamma_g2", "delta_g2"):
        _check_length(name, getattr(key, name), g2)
    if (key.matrix_c is None) != (key.family is KeyFamily.SNARKJS):
        raise MismatchError(
            "matrix C", "absent" if key.family is KeyFamily.SNARKJS else "present", "the opposite"
        )
    n_coefficients = check_dictionary(curve, key.dictionary, _SOURCE)
    for name, matrix in (("A", key.matrix_a), ("B", key.matrix_b), ("C", key.matrix_c)):
        if matrix is None:
            continue
        check_matrix(matrix, key.n_wires, n_coefficients, _SOURCE, f"matrix {name}")
        if matrix.n_rows > domain:
            raise MismatchError(f"rows of matrix {name}", f"at most {domain}", matrix.n_rows)
        if matrix.n_rows != key.matrix_a.n_rows:
            raise MismatchError(f"rows of matrix {name}", key.matrix_a.n_rows, matrix.n_rows)


def check_dictionary(curve: Curve, dictionary: bytes, source: str) -> int:
    """The number of coefficients of a dictionary; EncodingError for one not below r."""
    if len(dictionary) % SCALAR_SIZE_BYTES:
        raise FormatError(source, f"{len(dictionary)} bytes are no scalars", section="dictionary")
    count = len(dictionary) // SCALAR_SIZE_BYTES
    for i in range(count):
        scalar = dictionary[i * SCALAR_SIZE_BYTES : (i + 1) * SCALAR_SIZE_BYTES]
        if int.from_bytes(scalar, "little") >= curve.r:
            raise EncodingError(f"{source} dictionary[{i}]", "the value is not below r")
    return count


def check_matrix(
    matrix: SparseMatrix, n_wires: int, n_coefficients: int, source: str, section: str
) -> None:
    """Check that a CSR matrix can be read: FormatError naming source and section otherwise."""
    row_ptr, nnz = matrix.row_ptr, len(matrix.wire)
    if len(row_ptr) == 0 or row_ptr[0] != 0 or row_ptr[-1] != nnz:
        raise FormatError(source, f"row pointers do not span 0..{nnz}", section=section)
    if np.any(row_ptr[1:] < row_ptr[:-1]):
        raise FormatError(source, "row pointers do not ascend", section=section)
    if len(matrix.coefficient) != nnz:
        raise FormatError(
            source, f"{len(matrix.coefficient)} coefficients for {nnz} wires", section=section
        )
    if nnz and int(matrix.wire.max()) >= n_wires:
        raise FormatError(
            source, f"wire {int(matrix.wire.max())}, but there are {n_wires}", section=section
        )
    if nnz and int(matrix.coefficient.max()) >= n_coefficients:
        raise FormatError(
            source,
            f"coefficient {int(matrix.coefficient.max())}, but there are {n_coefficients}",
            section=section,
        )


def check_system(r1cs: R1cs) -> Curve:
    """Check that the matrices of a system can be read; returns its curve.

    Raises:
        MismatchError, FormatError, EncodingError: as `check_shape`.
    """
    curve = curve_named(r1cs.curve)
    if not 0 <= r1cs.n_public < r1cs.n_wires:
        raise MismatchError("number of public inputs", f"0..{r1cs.n_wires - 1}", r1cs.n_public)
    n_coefficients = check_dictionary(curve, r1cs.dictionary, "r1cs")
    for name, m in (("A", r1cs.matrix_a), ("B", r1cs.matrix_b), ("C", r1cs.matrix_c)):
        check_matrix(m, r1cs.n_wires, n_coefficients, "r1cs", f"matrix {name}")
        if m.n_rows != r1cs.n_rows:
            raise MismatchError(f"rows of matrix {name}", r1cs.n_rows, m.n_rows)
    return curve


def check_rows_input(r1cs: R1cs, witness: Witness) -> Curve:
    """Check that a system and a witness fit each other, and that the matrices can be read.

    Returns:
        The curve of both.

    Raises:
        MismatchError, FormatError, EncodingError: as `check_shape`.
    """
    if witness.curve != r1cs.curve:
        raise MismatchError("curve of the witness", r1cs.curve, witness.curve)
    if len(witness.values) != r1cs.n_wires * SCALAR_SIZE_BYTES:
        raise MismatchError(
            "number of wires of the witness",
            r1cs.n_wires,
            witness.n_wires,
            "the witness is of another circuit than the .r1cs",
        )
    return check_system(r1cs)


def _check_length(name: str, data: bytes, expected: int) -> None:
    if len(data) != expected:
        raise MismatchError(f"bytes of {name}", expected, len(data))
