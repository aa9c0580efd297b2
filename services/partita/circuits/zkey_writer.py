"""Proving keys written as snarkjs' .zkey version 1, sections in snarkjs' own order.

Only keys of the snarkjs family: another family's H query means something else. The file states no
contribution, because it comes from no ceremony, and says so in the place of its circuit hash.
snarkjs proves with it and exports its verification key; `snarkjs zkey verify` refuses it, as it
should.

Format: see `zkey`; snarkjs `src/zkey_new.js`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

from partita.circuits.development import DEVELOPMENT_MARK
from partita.circuits.elements import ELEMENT_BYTES, canonical_dictionary, words_of
from partita.circuits.zkey import ENTRY
from partita.circuits.zkey_format import GROTH16, MAGIC, VERSION, SectionType
from partita.groth16.curves import curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.key_checks import check_shape
from partita.groth16.keys import KeyFamily, Query

if TYPE_CHECKING:
    from typing import BinaryIO

    import numpy.typing as npt

    from partita.groth16.curves import Curve
    from partita.groth16.keys import ProvingKey, SparseMatrix

_QUERIES: Final = (
    (SectionType.C, Query.C),
    (SectionType.H, Query.H),
    (SectionType.A, Query.A),
    (SectionType.B1, Query.B1),
    (SectionType.B2, Query.B2),
)


def write_zkey(file: BinaryIO, key: ProvingKey) -> None:
    """Write a proving key, section by section; queries are not copied.

    Args:
        file: where to, from its present position on.
        key: of the snarkjs family.

    Raises:
        MismatchError: the key is of another family, or its shape is no key's; see `check_shape`.
    """
    if key.family is not KeyFamily.SNARKJS:
        raise MismatchError(
            "key family",
            KeyFamily.SNARKJS.value,
            key.family.value,
            "a .zkey holds no other; write a .params file",
        )
    check_shape(key)
    curve = curve_named(key.curve)
    sections: list[tuple[SectionType, bytes | memoryview]] = [
        (SectionType.PROTOCOL, struct.pack("<I", GROTH16)),
        (SectionType.HEADER, _header(curve, key)),
        (SectionType.IC, key.ic),
        (SectionType.COEFFICIENTS, _coefficients(curve, key)),
        *((section_type, key.queries[query]) for section_type, query in _QUERIES),
        (SectionType.CONTRIBUTIONS, DEVELOPMENT_MARK + struct.pack("<I", 0)),
    ]
    file.write(MAGIC + struct.pack("<II", VERSION, len(sections)))
    for section_type, data in sections:
        file.write(struct.pack("<IQ", section_type, len(data)))
        file.write(data)


def _header(curve: Curve, key: ProvingKey) -> bytes:
    parts = []
    for modulus, size_bytes in (
        (curve.fq.modulus, curve.g1.point_size_bytes // 2),
        (curve.r, ELEMENT_BYTES),
    ):
        parts.append(struct.pack("<I", size_bytes) + modulus.to_bytes(size_bytes, "little"))
    parts.append(struct.pack("<III", key.n_wires, key.n_public, key.domain_size))
    parts += [key.alpha_g1, key.beta_g1, key.beta_g2, key.gamma_g2, key.delta_g1, key.delta_g2]
    return b"".join(parts)


def _coefficients(curve: Curve, key: ProvingKey) -> bytes:
    """The entries of A and B by row, A's before B's, each value times R²."""
    radix = 1 << (8 * ELEMENT_BYTES)
    table = words_of(
        canonical_dictionary(
            words_of(key.dictionary), modulus=curve.r, factor=radix * radix % curve.r
        )
    )
    row = np.concatenate([_rows(key.matrix_a), _rows(key.matrix_b)])
    order = np.argsort(row, kind="stable")
    entries = np.empty(len(row), dtype=ENTRY)
    entries["matrix"] = np.repeat(
        np.array([0, 1], dtype=np.uint32), [len(key.matrix_a.wire), len(key.matrix_b.wire)]
    )[order]
    entries["row"] = row[order]
    entries["wire"] = np.concatenate([key.matrix_a.wire, key.matrix_b.wire])[order]
    coefficient = np.concatenate([key.matrix_a.coefficient, key.matrix_b.coefficient])
    entries["value"] = table[coefficient[order]]
    return struct.pack("<I", len(entries)) + entries.tobytes()


def _rows(matrix: SparseMatrix) -> npt.NDArray[np.uint32]:
    """The row of each entry."""
    lengths = np.diff(matrix.row_ptr).astype(np.int64)
    return np.repeat(np.arange(matrix.n_rows, dtype=np.uint32), lengths)
