"""Constraint systems: circom's own are satisfied by their witnesses; what is none is refused."""

from __future__ import annotations

import pytest

from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.wtns import read_wtns
from partita.groth16.curves import curve_named
from partita.groth16.errors import FormatError
from partita.groth16.keys import SparseMatrix
from partita.groth16.r1cs import R1cs
from tests.circuits.circuit_vectors import (
    ALL,
    SMALL,
    CircuitVector,
    edge,
    patched,
    sections_of,
    with_sections,
)

SHAPES = edge("shapes").read("circuit.r1cs")


def product(matrix: SparseMatrix, r1cs: R1cs, values: list[int]) -> list[int]:
    r = curve_named(r1cs.curve).r
    table = [
        int.from_bytes(r1cs.dictionary[at : at + 32], "little")
        for at in range(0, len(r1cs.dictionary), 32)
    ]
    return [
        sum(
            table[matrix.coefficient[k]] * values[matrix.wire[k]]
            for k in range(int(matrix.row_ptr[i]), int(matrix.row_ptr[i + 1]))
        )
        % r
        for i in range(matrix.n_rows)
    ]


def first_bad_row(r1cs: R1cs, wtns: bytes) -> int | None:
    raw = bytes(read_wtns("w", wtns).values)
    values = [int.from_bytes(raw[at : at + 32], "little") for at in range(0, len(raw), 32)]
    a, b, c = (product(m, r1cs, values) for m in (r1cs.matrix_a, r1cs.matrix_b, r1cs.matrix_c))
    r = curve_named(r1cs.curve).r
    return next((i for i in range(r1cs.n_rows) if (a[i] * b[i] - c[i]) % r), None)


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_the_counts_of_a_constraint_system_are_read(vector: CircuitVector) -> None:
    r1cs = read_r1cs("c", vector.read("circuit.r1cs"))
    assert r1cs.curve == vector.facts["curve"]
    assert r1cs.n_rows == vector.facts["constraints"]
    assert r1cs.n_wires == vector.facts["wires"]
    assert r1cs.n_public_outputs == vector.facts["public_outputs"]
    assert r1cs.n_public == vector.facts["n_public"]


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_the_rows_hold_for_the_witness_and_break_where_they_should(vector: CircuitVector) -> None:
    r1cs = read_r1cs("c", vector.read("circuit.r1cs"))
    assert first_bad_row(r1cs, vector.read("witness.wtns")) is None
    if "unsatisfied_first_bad_row" in vector.facts:
        wrong = vector.read("unsatisfied.wtns")
        assert first_bad_row(r1cs, wrong) == vector.facts["unsatisfied_first_bad_row"]


def test_custom_gates_are_refused_by_name() -> None:
    gates = (1).to_bytes(4, "little") + b"cMul\0" + bytes(4)
    with pytest.raises(FormatError, match="uses 1 custom gates, which only PLONK proves"):
        read_r1cs("c", with_sections(SHAPES, {4: gates}))
    assert read_r1cs("c", with_sections(SHAPES, {4: bytes(4), 5: b""})).n_rows == 8


def test_a_coefficient_or_wire_that_does_not_exist_is_named() -> None:
    rows = sections_of(SHAPES)[2]
    with pytest.raises(FormatError, match=r"constraint 0, wire 28: the circuit has 28 wires"):
        read_r1cs("c", with_sections(SHAPES, {2: patched(rows, 4, b"\x1c")}))
    with pytest.raises(FormatError, match="constraint 0, a coefficient is not below") as caught:
        read_r1cs("c", with_sections(SHAPES, {2: patched(rows, 8, b"\xff" * 32)}))
    assert caught.value.section == "section 2 (constraints)"


def test_a_count_that_lies_is_refused_without_allocating() -> None:
    header, rows = sections_of(SHAPES)[1], sections_of(SHAPES)[2]
    most = (1 << 32) - 1
    for at in (36, 40, 44, 48, 60):  # wires, outputs, inputs, private inputs, constraints
        lying = with_sections(SHAPES, {1: patched(header, at, most.to_bytes(4, "little"))})
        with pytest.raises(FormatError):
            read_r1cs("c", lying)
    with pytest.raises(FormatError, match="constraint 0 claims 4294967295 terms"):
        read_r1cs("c", with_sections(SHAPES, {2: patched(rows, 0, most.to_bytes(4, "little"))}))
    with pytest.raises(FormatError, match="8 bytes too many behind the last constraint"):
        read_r1cs("c", with_sections(SHAPES, {2: rows + bytes(8)}))
    with pytest.raises(FormatError, match="constraint 7 claims 16 terms, more than"):
        read_r1cs("c", with_sections(SHAPES, {2: rows[:-4]}))
    more = (9).to_bytes(4, "little")
    with pytest.raises(FormatError, match="ends before constraint 8 does"):
        read_r1cs("c", with_sections(SHAPES, {1: patched(header, 60, more)}))
