"""The circuit of the benchmarks, at any size, with witnesses from a seed.

"Mixed", as real circuits are: half of the constraints are bit rows b·(1 - b) = 0 whose witness is
0 or 1, half are dense rows x' = x·(x + 7) whose witness fills the field. The last and the first x
are public. `peers/arkworks/src/main.rs` makes the same constraints and the same witness.

Wires: the constant one, the last x, the first x, the bits, the other x in order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.keys import SparseMatrix
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

N_PUBLIC = 2
SPARE_ROWS = 12
"""A domain of 2^k takes 2^k - 12 constraints here and in every peer."""

_ADDEND = 7
_FIRST_BYTES = 30  # of the first x: below the modulus of either curve
_SEED_WORDS = 4
_LAST_X, _FIRST_X, _FIRST_BIT = 1, 2, 3
_ONE, _MINUS_ONE, _C = 0, 1, 2  # places in the dictionary


@dataclass(frozen=True, slots=True)
class Mixed:
    """The circuit with `n_constraints` over a curve's scalar field."""

    curve: str
    n_constraints: int

    @classmethod
    def of_domain(cls, curve: str, log_size: int) -> Mixed:
        """The largest one whose domain is 2^log_size in every prover."""
        return cls(curve, (1 << log_size) - SPARE_ROWS)

    @property
    def n_bits(self) -> int:
        """Bit rows, and wires that hold a bit."""
        return self.n_constraints // 2

    @property
    def n_dense(self) -> int:
        """Dense rows; they link one x more."""
        return self.n_constraints - self.n_bits

    @property
    def n_wires(self) -> int:
        """All wires, the constant included."""
        return 1 + self.n_bits + self.n_dense + 1

    def system(self) -> R1cs:
        """Its constraints."""
        bits = _FIRST_BIT + np.arange(self.n_bits, dtype=np.uint32)
        inner = _FIRST_BIT + self.n_bits + np.arange(self.n_dense - 1, dtype=np.uint32)
        x = np.concatenate([[_FIRST_X], inner]).astype(np.uint32)
        following = np.concatenate([inner, [_LAST_X]]).astype(np.uint32)
        multiplied = np.concatenate([bits, x])
        a = SparseMatrix(
            row_ptr=np.arange(self.n_constraints + 1, dtype=np.uint64),
            wire=multiplied,
            coefficient=np.full(self.n_constraints, _ONE, dtype=np.uint32),
        )
        # 1 - b and 7 + x: the constant wire, then the other.
        b_wire = np.zeros((self.n_constraints, 2), dtype=np.uint32)
        b_wire[:, 1] = multiplied
        b_coefficient = np.full((self.n_constraints, 2), _ONE, dtype=np.uint32)
        b_coefficient[: self.n_bits, 1] = _MINUS_ONE
        b_coefficient[self.n_bits :, 0] = _C
        b = SparseMatrix(
            row_ptr=2 * np.arange(self.n_constraints + 1, dtype=np.uint64),
            wire=b_wire.ravel(),
            coefficient=b_coefficient.ravel(),
        )
        c = SparseMatrix(
            row_ptr=np.concatenate(
                [
                    np.zeros(self.n_bits, dtype=np.uint64),
                    np.arange(self.n_dense + 1, dtype=np.uint64),
                ]
            ),
            wire=following,
            coefficient=np.full(self.n_dense, _ONE, dtype=np.uint32),
        )
        r = curve_named(self.curve).r
        return R1cs(
            curve=self.curve,
            n_public_outputs=1,
            n_public_inputs=1,
            n_private_inputs=self.n_bits,
            n_wires=self.n_wires,
            matrix_a=a,
            matrix_b=b,
            matrix_c=c,
            dictionary=b"".join(
                value.to_bytes(SCALAR_SIZE_BYTES, "little") for value in (1, r - 1, _ADDEND)
            ),
        )

    def witness(self, seed: int) -> Witness:
        """The witness of a seed; each seed gives another statement."""
        r = curve_named(self.curve).r
        words = _words(seed, _SEED_WORDS + self.n_bits)
        x = int.from_bytes(words[:_SEED_WORDS].tobytes()[:_FIRST_BYTES], "little")
        chain = bytearray(SCALAR_SIZE_BYTES * (self.n_dense + 1))
        for at in range(0, len(chain), SCALAR_SIZE_BYTES):
            chain[at : at + SCALAR_SIZE_BYTES] = x.to_bytes(SCALAR_SIZE_BYTES, "little")
            x = x * (x + _ADDEND) % r
        bits = np.zeros((self.n_bits, SCALAR_SIZE_BYTES), dtype=np.uint8)
        bits[:, 0] = words[_SEED_WORDS:] & np.uint64(1)
        one = (1).to_bytes(SCALAR_SIZE_BYTES, "little")
        first, inner, last = (
            chain[:SCALAR_SIZE_BYTES],
            chain[SCALAR_SIZE_BYTES:-SCALAR_SIZE_BYTES],
            chain[-SCALAR_SIZE_BYTES:],
        )
        return Witness(self.curve, one + bytes(last + first) + bits.tobytes() + bytes(inner))


def write_r1cs(path: Path, system: R1cs) -> None:
    """Write a system as circom does (.r1cs version 1), wires named by their own numbers."""
    r = curve_named(system.curve).r
    header = struct.pack("<I", SCALAR_SIZE_BYTES) + r.to_bytes(SCALAR_SIZE_BYTES, "little")
    header += struct.pack(
        "<IIIIQI",
        system.n_wires,
        system.n_public_outputs,
        system.n_public_inputs,
        system.n_private_inputs,
        system.n_wires,
        system.n_rows,
    )
    labels = np.arange(system.n_wires, dtype="<u8").tobytes()
    sections = ((1, header), (2, _constraints(system)), (3, labels))
    with path.open("wb") as file:
        file.write(b"r1cs" + struct.pack("<II", 1, len(sections)))
        for number, data in sections:
            file.write(struct.pack("<IQ", number, len(data)) + data)


def _constraints(system: R1cs) -> bytes:
    entry = np.dtype([("wire", "<u4"), ("value", "V32")])
    values = np.frombuffer(system.dictionary, dtype="V32")
    sides = []
    for matrix in (system.matrix_a, system.matrix_b, system.matrix_c):
        entries = np.zeros(len(matrix.wire), dtype=entry)
        entries["wire"], entries["value"] = matrix.wire, values[matrix.coefficient]
        sides.append((matrix.row_ptr.tolist(), entries.tobytes()))
    out = []
    size = entry.itemsize
    for row in range(system.n_rows):
        for row_ptr, data in sides:
            start, end = row_ptr[row], row_ptr[row + 1]
            out.append((end - start).to_bytes(4, "little") + data[size * start : size * end])
    return b"".join(out)


def _words(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """The first words of Vigna's splitmix64."""
    places = np.arange(1, count + 1, dtype=np.uint64)
    z = np.uint64(seed) + places * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
