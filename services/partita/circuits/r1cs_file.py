"""Constraint systems as circom writes them (.r1cs version 1), read into matrices.

Custom gates belong to PLONK and are refused by name. The map from wires to labels is checked for
its size and otherwise skipped: names come from the .sym file.

Format: https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from partita.circuits.container import read_container
from partita.circuits.elements import (
    ELEMENT_BYTES,
    canonical_dictionary,
    distinct,
    first_not_below,
    sparse_matrix,
)
from partita.circuits.snarkjs_curves import read_scalar_prime
from partita.groth16.r1cs import R1cs

if TYPE_CHECKING:
    import numpy.typing as npt

    from partita.circuits.container import Container, Section
    from partita.groth16.curves import Curve

MAGIC: Final = b"r1cs"
VERSION: Final = 1
_HEADER, _CONSTRAINTS, _LABELS, _GATE_LIST, _GATE_USES = 1, 2, 3, 4, 5
_NAMES: Final = {
    _HEADER: "header",
    _CONSTRAINTS: "constraints",
    _LABELS: "wire to label map",
    _GATE_LIST: "custom gates list",
    _GATE_USES: "custom gates application",
}
_ENTRY_WORDS: Final = (4 + ELEMENT_BYTES) // 4


@dataclass(frozen=True, slots=True)
class _Header:
    curve: Curve
    n_wires: int
    n_outputs: int
    n_inputs: int
    n_private: int
    n_labels: int
    n_constraints: int


def read_r1cs(source: str, data: bytes | memoryview) -> R1cs:
    """Read a constraint system.

    Args:
        source: the name of the file, for errors.
        data: all its bytes.

    Raises:
        FormatError: the file is malformed, cut off or too long, uses custom gates, or names a
            wire or value that does not exist.
    """
    container = read_container(source, data, magic=MAGIC, version=VERSION, names=_NAMES)
    header = _read_header(container.section(_HEADER))
    _refuse_custom_gates(container)
    container.section(_LABELS).expect_size(8 * header.n_wires, f"{header.n_wires} wires")
    section = container.section(_CONSTRAINTS)
    counts, counter_at = _walk(section, header.n_constraints)
    words = np.frombuffer(section.data, dtype="<u4")
    entries = np.delete(words, counter_at).reshape(-1, _ENTRY_WORDS)
    wire = np.ascontiguousarray(entries[:, 0], dtype=np.uint32)
    values = np.ascontiguousarray(entries[:, 1:]).view("<u8")
    _check_entries(section, header, wire, values, counts)
    table, coefficient = distinct(values)
    combination = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    row, which = combination // np.uint32(3), combination % np.uint32(3)
    matrices = [
        sparse_matrix(
            row[which == side],
            wire[which == side],
            coefficient[which == side],
            n_rows=header.n_constraints,
        )
        for side in range(3)
    ]
    return R1cs(
        curve=header.curve.name,
        n_public_outputs=header.n_outputs,
        n_public_inputs=header.n_inputs,
        n_private_inputs=header.n_private,
        n_wires=header.n_wires,
        matrix_a=matrices[0],
        matrix_b=matrices[1],
        matrix_c=matrices[2],
        dictionary=canonical_dictionary(table, modulus=header.curve.r, factor=1),
    )


def _read_header(section: Section) -> _Header:
    curve = read_scalar_prime(section, "prime")
    header = _Header(
        curve=curve,
        n_wires=section.u32("number of wires"),
        n_outputs=section.u32("number of public outputs"),
        n_inputs=section.u32("number of public inputs"),
        n_private=section.u32("number of private inputs"),
        n_labels=section.u64("number of labels"),
        n_constraints=section.u32("number of constraints"),
    )
    section.done()
    named = 1 + header.n_outputs + header.n_inputs + header.n_private
    if named > header.n_wires:
        raise section.error(
            f"claims {header.n_wires} wires, but its outputs and inputs need {named}", at=0
        )
    if header.n_labels < header.n_wires:
        raise section.error(
            f"claims {header.n_labels} labels for {header.n_wires} wires; each wire has one", at=0
        )
    return header


def _refuse_custom_gates(container: Container) -> None:
    for section_type in (_GATE_LIST, _GATE_USES):
        if not container.has(section_type):
            continue
        section = container.section(section_type)
        count = section.u32("number of custom gates") if section.data else 0
        if count:
            raise section.error(
                f"the circuit uses {count} custom gates, which only PLONK proves; "
                "compile it without `pragma custom_templates`",
                at=0,
            )
        section.done()


def _walk(section: Section, n_constraints: int) -> tuple[npt.NDArray[np.int64], list[int]]:
    """The number of entries of each linear combination, and where its counter is, in words."""
    data, size_bytes = section.data, len(section.data)
    if 12 * n_constraints > size_bytes:
        raise section.error(
            f"{n_constraints} constraints need at least {12 * n_constraints} bytes, "
            f"the section has {size_bytes}",
            at=0,
        )
    counts: list[int] = []
    counter_at: list[int] = []
    unpack = struct.Struct("<I").unpack_from
    at = 0
    for index in range(3 * n_constraints):
        if at + 4 > size_bytes:
            raise section.error(f"ends before constraint {index // 3} does", at=at)
        (count,) = unpack(data, at)
        counter_at.append(at // 4)
        counts.append(count)
        at += 4 + 4 * _ENTRY_WORDS * count
        if at > size_bytes:
            raise section.error(
                f"constraint {index // 3} claims {count} terms, more than the section holds",
                at=4 * counter_at[-1],
            )
    if at != size_bytes:
        raise section.error(f"{size_bytes - at} bytes too many behind the last constraint", at=at)
    return np.array(counts, dtype=np.int64), counter_at


def _check_entries(
    section: Section,
    header: _Header,
    wire: npt.NDArray[np.uint32],
    values: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
) -> None:
    def fail(index: int, what: str) -> None:
        combination = int(np.searchsorted(np.cumsum(counts), index, side="right"))
        at = 4 * (combination + 1) + 4 * _ENTRY_WORDS * index
        raise section.error(f"constraint {combination // 3}, {what}", at=at)

    if len(wire) and int(wire.max()) >= header.n_wires:
        index = int(np.argmax(wire >= header.n_wires))
        fail(index, f"wire {wire[index]}: the circuit has {header.n_wires} wires")
    bad = first_not_below(values, header.curve.r)
    if bad is not None:
        fail(bad, f"a coefficient is not below the modulus of {header.curve.name}")
