"""The shape of a key: whatever a backend would trip over is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from partita.groth16.curves import BN254
from partita.groth16.errors import EncodingError, FormatError, MismatchError
from partita.groth16.key_checks import check_rows_input, check_shape
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from tests.groth16.tiny_setup import product_circuit, set_up


@pytest.fixture(params=KeyFamily, ids=lambda f: f.value)
def key(request: pytest.FixtureRequest) -> ProvingKey:
    return set_up(product_circuit(), "bn254", request.param)


def test_a_good_key_passes(key: ProvingKey) -> None:
    check_shape(key)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"curve": "bn128"}, "curve differs: expected bn254 or bls12-381, found bn128"),
        ({"n_public": 5}, "number of public inputs"),
        ({"domain_size": 7}, "domain size differs: expected a power of two"),
        ({"domain_size": 1 << 30}, "domain size"),
        ({"domain_size": 16}, "bytes of query h"),
        ({"n_wires": 6}, "bytes of query a differs: expected 384, found 320"),
        ({"ic": bytes(64)}, "bytes of ic differs: expected 128, found 64"),
        ({"beta_g2": bytes(64)}, "bytes of beta_g2"),
    ],
)
def test_counts_and_lengths_must_agree(key: ProvingKey, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(MismatchError, match=text):
        check_shape(dataclasses.replace(key, **changes))


@pytest.mark.parametrize("query", Query, ids=lambda q: q.value)
def test_a_short_query_is_named(key: ProvingKey, query: Query) -> None:
    queries = dict(key.queries)
    queries[query] = queries[query][:-1]
    with pytest.raises(MismatchError, match=f"bytes of query {query.value}"):
        check_shape(dataclasses.replace(key, queries=queries))


def test_matrix_c_belongs_to_bellperson_alone(key: ProvingKey) -> None:
    other = None if key.matrix_c is not None else key.matrix_a
    with pytest.raises(MismatchError, match="matrix C"):
        check_shape(dataclasses.replace(key, matrix_c=other))


def _with(matrix: SparseMatrix, name: str, index: int, value: int) -> SparseMatrix:
    array = getattr(matrix, name).copy()
    array[index] = value
    return dataclasses.replace(matrix, **{name: array})


@pytest.mark.parametrize(
    ("name", "index", "value", "text"),
    [
        ("row_ptr", 0, 1, "do not span"),
        ("row_ptr", -1, 99, "do not span"),
        ("row_ptr", 1, 4, "do not ascend"),
        ("wire", 0, 5, "wire 5, but there are 5"),
        ("coefficient", 0, 9, "coefficient 9, but there are"),
    ],
)
def test_a_matrix_with_an_index_out_of_range_is_refused(
    key: ProvingKey, name: str, index: int, value: int, text: str
) -> None:
    broken = dataclasses.replace(key, matrix_a=_with(key.matrix_a, name, index, value))
    with pytest.raises(FormatError, match=f"proving key, matrix A: .*{text}"):
        check_shape(broken)


def test_matrices_have_rows_within_the_domain_and_equally_many(key: ProvingKey) -> None:
    longer = SparseMatrix(
        np.append(key.matrix_b.row_ptr, key.matrix_b.row_ptr[-1]),
        key.matrix_b.wire,
        key.matrix_b.coefficient,
    )
    with pytest.raises(MismatchError, match="rows of matrix B differs: expected 5, found 6"):
        check_shape(dataclasses.replace(key, matrix_b=longer))
    long = SparseMatrix(
        np.append(key.matrix_a.row_ptr, [key.matrix_a.row_ptr[-1]] * 4).astype(np.uint64),
        key.matrix_a.wire,
        key.matrix_a.coefficient,
    )
    with pytest.raises(MismatchError, match="rows of matrix A differs: expected at most 8"):
        check_shape(dataclasses.replace(key, matrix_a=long))


def test_a_coefficient_not_below_r_is_named(key: ProvingKey) -> None:
    dictionary = key.dictionary[:32] + BN254.r.to_bytes(32, "little") + key.dictionary[64:]
    with pytest.raises(EncodingError, match=r"dictionary\[1\]"):
        check_shape(dataclasses.replace(key, dictionary=dictionary))
    with pytest.raises(FormatError, match="dictionary"):
        check_shape(dataclasses.replace(key, dictionary=key.dictionary[:-1]))


def test_a_system_and_a_witness_must_fit() -> None:
    circuit = product_circuit()
    r1cs = circuit.r1cs("bn254")
    assert check_rows_input(r1cs, circuit.witness_of("bn254")) is BN254
    with pytest.raises(MismatchError, match="curve of the witness"):
        check_rows_input(r1cs, circuit.witness_of("bls12-381"))
    with pytest.raises(MismatchError, match=r"number of wires .*expected 5, found 4"):
        check_rows_input(r1cs, circuit.witness_of("bn254", [1, 2, 3, 4]))
