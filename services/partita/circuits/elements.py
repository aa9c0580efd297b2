"""Arrays of field elements and of matrix entries, as numpy sees them.

Elements are 32 bytes, little-endian; here they are rows of four 64-bit words, least significant
first. Nothing here knows a file format. Work is vectorised: costs are a few passes over the
entries, and arithmetic modulo r is done only once per distinct value.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from partita.groth16.keys import SparseMatrix

ELEMENT_BYTES: Final = 32

_CHUNK: Final = 1 << 18
"""Elements that are sorted at once."""

Words = npt.NDArray[np.uint64]
"""Shape (n, 4): elements, words least significant first."""

_MIX: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93],
    dtype=np.uint64,
)


def words_of(data: bytes | memoryview) -> Words:
    """View n x 32 bytes as elements, without a copy."""
    return np.frombuffer(data, dtype="<u8").reshape(-1, 4)


def first_not_below(values: Words, modulus: int) -> int | None:
    """The index of the first element that is not below the modulus, or None.

    Only elements whose most significant word reaches the modulus' own are compared in full.
    """
    top = np.uint64(modulus >> 192)
    for index in np.flatnonzero(values[:, 3] >= top):
        if int.from_bytes(values[index].tobytes(), "little") >= modulus:
            return int(index)
    return None


def distinct(values: Words) -> tuple[Words, npt.NDArray[np.uint32]]:
    """The distinct elements, and for each element the index of its value among them.

    Done in chunks, so that the scratch does not grow with the number of elements. `values` may
    be strided.
    """
    tables: list[Words] = []
    indexes: list[npt.NDArray[np.uint32]] = []
    n_before = 0
    for at in range(0, len(values), _CHUNK):
        table, index = _distinct(np.ascontiguousarray(values[at : at + _CHUNK]))
        tables.append(table)
        indexes.append(index + np.uint32(n_before))
        n_before += len(table)
    if not tables:
        return np.zeros((0, 4), dtype=np.uint64), np.zeros(0, dtype=np.uint32)
    if len(tables) == 1:
        return tables[0], indexes[0]
    table, renamed = _distinct(np.concatenate(tables))
    return table, renamed[np.concatenate(indexes)]


def _distinct(values: Words) -> tuple[Words, npt.NDArray[np.uint32]]:
    """`distinct` of one chunk.

    Elements are sorted by a 64-bit mix of their words, which is cheaper than comparing 32
    bytes; if two different values mix to the same word, the whole values are sorted instead.
    """
    mixed = (values * _MIX).sum(axis=1, dtype=np.uint64)
    mixed ^= mixed >> np.uint64(29)
    _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    table = values[first]
    if not np.array_equal(table[inverse], values):
        table, inverse = np.unique(values, axis=0, return_inverse=True)
    return table, inverse.reshape(-1).astype(np.uint32)


def canonical_dictionary(table: Words, *, modulus: int, factor: int) -> bytes:
    """Each element times `factor` mod r, as n x 32 canonical bytes."""
    raw = table.astype("<u8", copy=False).tobytes()
    if factor == 1:
        return raw
    product = bytearray(len(raw))
    for at in range(0, len(raw), ELEMENT_BYTES):
        value = int.from_bytes(raw[at : at + ELEMENT_BYTES], "little") * factor % modulus
        product[at : at + ELEMENT_BYTES] = value.to_bytes(ELEMENT_BYTES, "little")
    return bytes(product)


def sparse_matrix(
    row: npt.NDArray[np.uint32],
    wire: npt.NDArray[np.uint32],
    coefficient: npt.NDArray[np.uint32],
    *,
    n_rows: int,
) -> SparseMatrix:
    """A CSR matrix from its entries in any order; the order within a row is kept.

    Args:
        row, wire, coefficient: one value an entry; rows are below `n_rows`.
        n_rows: rows of the matrix, empty ones included.
    """
    if len(row) > 1 and bool((row[1:] < row[:-1]).any()):
        order = np.argsort(row, kind="stable")
        row, wire, coefficient = row[order], wire[order], coefficient[order]
    row_ptr = np.zeros(n_rows + 1, dtype=np.uint64)
    np.cumsum(np.bincount(row, minlength=n_rows), out=row_ptr[1:])
    return SparseMatrix(
        row_ptr=row_ptr,
        wire=np.ascontiguousarray(wire, dtype=np.uint32),
        coefficient=np.ascontiguousarray(coefficient, dtype=np.uint32),
    )
