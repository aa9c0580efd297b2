"""Proving keys of snarkjs: what is read means what circom wrote, and what is none is refused."""

from __future__ import annotations

import pytest

from partita.circuits.container import write_container
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.zkey import read_zkey
from partita.groth16.curves import curve_named
from partita.groth16.errors import EncodingError, FormatError, InputError
from partita.groth16.key_checks import check_shape
from partita.groth16.keys import KeyFamily, Query, SparseMatrix
from tests.circuits.circuit_vectors import (
    ALL,
    HOSTILE,
    SMALL,
    CircuitVector,
    edge,
    patched,
    sections_of,
    with_sections,
)

KEY = edge("one-constraint").read("circuit.zkey")
HEADER = sections_of(KEY)[2]
COUNTS_AT = 2 * (4 + 32)
POINTS_AT = COUNTS_AT + 12
MOST = (1 << 32) - 1


def with_header(at: int, new: bytes) -> bytes:
    return with_sections(KEY, {2: patched(HEADER, at, new)})


def rows_of(matrix: SparseMatrix, dictionary: bytes) -> list[list[tuple[int, int]]]:
    """Each row as its sorted (wire, coefficient) pairs."""
    table = [
        int.from_bytes(dictionary[at : at + 32], "little") for at in range(0, len(dictionary), 32)
    ]
    return [
        sorted(
            (int(matrix.wire[k]), table[matrix.coefficient[k]])
            for k in range(int(matrix.row_ptr[i]), int(matrix.row_ptr[i + 1]))
        )
        for i in range(matrix.n_rows)
    ]


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_the_counts_of_a_key_are_read(vector: CircuitVector) -> None:
    key = read_zkey("k", vector.read("circuit.zkey"))
    check_shape(key)
    assert key.family is KeyFamily.SNARKJS
    assert key.curve == vector.facts["curve"]
    assert key.n_wires == vector.facts["wires"]
    assert key.n_public == vector.facts["n_public"]
    assert key.domain_size == vector.facts["domain_size"]
    assert key.matrix_a.n_rows == vector.facts["constraints"] + key.n_public + 1
    g1 = curve_named(key.curve).g1.point_size_bytes
    n_infinity = sum(
        not any(key.queries[Query.A][at : at + g1]) for at in range(0, key.n_wires * g1, g1)
    )
    assert n_infinity == vector.facts["infinity_points"]["A"]


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_a_key_holds_the_rows_of_its_circuit_and_those_of_the_public_wires(
    vector: CircuitVector,
) -> None:
    """A coefficient is stored times R²; the dictionary has what circom wrote."""
    key = read_zkey("k", vector.read("circuit.zkey"))
    r1cs = read_r1cs("c", vector.read("circuit.r1cs"))
    bound = [[(wire, 1)] for wire in range(key.n_public + 1)]
    assert rows_of(key.matrix_a, key.dictionary) == rows_of(r1cs.matrix_a, r1cs.dictionary) + bound
    assert rows_of(key.matrix_b, key.dictionary)[: r1cs.n_rows] == rows_of(
        r1cs.matrix_b, r1cs.dictionary
    )
    assert all(not row for row in rows_of(key.matrix_b, key.dictionary)[r1cs.n_rows :])


@pytest.mark.parametrize("protocol", ["plonk", "fflonk"])
def test_a_key_of_another_protocol_is_refused_by_name(protocol: str) -> None:
    data = (HOSTILE / f"{protocol}.zkey").read_bytes()
    with pytest.raises(FormatError, match=f"this is a key of {protocol.upper()}"):
        read_zkey("k", data)


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(FormatError, match="unknown protocol 7"):
        read_zkey("k", with_sections(KEY, {1: (7).to_bytes(4, "little")}))


@pytest.mark.parametrize("count_at", [COUNTS_AT, COUNTS_AT + 4, COUNTS_AT + 8])
@pytest.mark.parametrize("value", [0, 1, 2, 3, 5, 1 << 20, 1 << 27, 1 << 31, MOST])
def test_a_count_that_lies_is_refused_without_allocating(count_at: int, value: int) -> None:
    honest = int.from_bytes(HEADER[count_at : count_at + 4], "little")
    if value != honest:
        with pytest.raises(FormatError):
            read_zkey("k", with_header(count_at, value.to_bytes(4, "little")))


@pytest.mark.parametrize("count", [0, MOST])
def test_a_count_of_coefficients_that_lies_is_refused(count: int) -> None:
    coefficients = sections_of(KEY)[4]
    with pytest.raises(FormatError, match=r"section 4 \(coefficients\).*coefficients makes it"):
        read_zkey(
            "k", with_sections(KEY, {4: patched(coefficients, 0, count.to_bytes(4, "little"))})
        )


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (4, 2, "coefficient 0 is for matrix 2; 0 is A and 1 is B"),
        (8, 4, "coefficient 0 is for row 4; the domain has 4"),
        (12, 4, "coefficient 0 is for wire 4; the key has 4"),
        (44 + 12, MOST, f"coefficient 1 is for wire {MOST}"),
    ],
)
def test_a_coefficient_out_of_bounds_is_named(at: int, value: int, message: str) -> None:
    coefficients = sections_of(KEY)[4]
    bad = with_sections(KEY, {4: patched(coefficients, at, value.to_bytes(4, "little"))})
    with pytest.raises(FormatError, match=message) as caught:
        read_zkey("k", bad)
    assert caught.value.section == "section 4 (coefficients)"


def test_a_coefficient_not_below_the_modulus_is_named_with_its_offset() -> None:
    bad = with_sections(KEY, {4: patched(sections_of(KEY)[4], 16, b"\xff" * 32)})
    with pytest.raises(FormatError, match="coefficient 0 is not below the modulus") as caught:
        read_zkey("k", bad)
    at = caught.value.offset
    assert at is not None
    assert bad[at : at + 32] == b"\xff" * 32


def test_a_key_over_another_prime_is_refused() -> None:
    with pytest.raises(FormatError, match="it must be BN254's"):
        read_zkey("k", with_header(4 + 32 + 4, b"\x03"))
    with pytest.raises(FormatError, match="scalar field is bn254's, but the base field"):
        read_zkey("k", with_header(4, b"\x03"))


@pytest.mark.parametrize(
    ("name", "at", "size"),
    [
        ("alpha_g1", 0, 64),
        ("beta_g1", 64, 64),
        ("beta_g2", 128, 128),
        ("gamma_g2", 256, 128),
        ("delta_g1", 384, 64),
        ("delta_g2", 448, 128),
    ],
)
def test_a_single_point_that_is_no_point_of_its_group_is_named(
    name: str, at: int, size: int
) -> None:
    with pytest.raises(EncodingError, match=f"k, {name}: the point is off the curve"):
        read_zkey("k", with_header(POINTS_AT + at, b"\x01" + bytes(size - 1)))
    with pytest.raises(EncodingError, match=f"k, {name}: the point is infinity"):
        read_zkey("k", with_header(POINTS_AT + at, bytes(size)))
    with pytest.raises(EncodingError, match=f"k, {name}: a coordinate is not below the modulus"):
        read_zkey("k", with_header(POINTS_AT + at, b"\xff" * 32))


def test_a_single_point_outside_the_subgroup_is_named() -> None:
    group = curve_named("bn254").g2
    f = group.field
    x = next(
        x
        for x in ((n, 0) for n in range(1, 100))
        if (y := f.sqrt(group.right_side(x))) is not None and not group.is_in_subgroup((x, y))
    )
    y = f.sqrt(group.right_side(x))
    assert y is not None
    with pytest.raises(EncodingError, match="k, gamma_g2: the point is outside the subgroup"):
        read_zkey("k", with_header(POINTS_AT + 256, group.to_device((x, y))))


def test_a_point_of_ic_off_the_curve_is_named() -> None:
    ic = sections_of(KEY)[3]
    with pytest.raises(EncodingError, match=r"IC\[1\]: the point is off the curve"):
        read_zkey("k", with_sections(KEY, {3: patched(ic, 64, b"\x01" + bytes(63))}))


@pytest.mark.parametrize("section", range(1, 10))
def test_a_section_that_is_missing_short_or_long_is_refused_by_name(section: int) -> None:
    body = sections_of(KEY)[section]
    with pytest.raises(FormatError, match=f"section {section} .*missing"):
        read_zkey("k", with_sections(KEY, {section: None}))
    for wrong in (body[:-1], body + b"\0", b""):
        with pytest.raises(InputError, match=rf"section {section} \("):
            read_zkey("k", with_sections(KEY, {section: wrong}))


def test_sections_may_come_in_any_order() -> None:
    turned = write_container(magic=b"zkey", version=1, sections=reversed(sections_of(KEY).items()))
    assert turned != KEY
    assert read_zkey("k", turned).ic == read_zkey("k", KEY).ic
