"""Elements as arrays: dictionaries and matrices that mean what the entries mean."""

from __future__ import annotations

import random

import numpy as np
import pytest

from partita.circuits.elements import (
    _MIX,
    Words,
    canonical_dictionary,
    distinct,
    first_not_below,
    sparse_matrix,
    words_of,
)
from partita.groth16.curves import CURVES


def elements(values: list[int]) -> Words:
    return words_of(b"".join(v.to_bytes(32, "little") for v in values))


@pytest.mark.parametrize("curve", list(CURVES))
def test_the_first_element_not_below_the_modulus_is_found(curve: str) -> None:
    r = CURVES[curve].r
    assert first_not_below(elements([0, 1, r - 1, r >> 1]), r) is None
    assert first_not_below(elements([0, r - 1, r, (1 << 256) - 1]), r) == 2
    assert first_not_below(elements([(1 << 256) - 1]), r) == 0
    assert first_not_below(elements([]), r) is None


def test_every_element_is_found_again_in_the_dictionary() -> None:
    rng = random.Random(1)
    pool = [rng.getrandbits(256) for _ in range(50)] + [0, 1, 1 << 64, 1 << 128, 1 << 192]
    values = elements([rng.choice(pool) for _ in range(2000)])
    table, index = distinct(values)
    assert np.array_equal(table[index], values)
    assert len(table) == len(np.unique(values, axis=0))


def test_the_dictionary_does_not_depend_on_the_size_of_the_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(3)
    pool = [rng.getrandbits(256) for _ in range(50)]
    values = elements([rng.choice(pool) for _ in range(1001)])
    whole, _ = distinct(values)
    for chunk in (1, 7, 100, 1000):
        monkeypatch.setattr("partita.circuits.elements._CHUNK", chunk)
        table, index = distinct(values)
        assert np.array_equal(table[index], values)
        assert len(table) == len(whole)
    assert len(distinct(values[:0])[0]) == 0


def test_values_whose_mixes_collide_stay_apart() -> None:
    """w0·c0 + w1·c1 is the same for (c1, 0) and (0, c0): the cheap sort cannot tell them."""
    c0, c1 = int(_MIX[0]), int(_MIX[1])
    values = elements([c1, c0 << 64, c1, 7])
    table, index = distinct(values)
    assert np.array_equal(table[index], values)
    assert index[0] == index[2] != index[1]


def test_a_dictionary_is_multiplied_modulo_r() -> None:
    r = CURVES["bn254"].r
    raw = canonical_dictionary(elements([0, 1, r - 1]), modulus=r, factor=3)
    found = [int.from_bytes(raw[i : i + 32], "little") for i in (0, 32, 64)]
    assert found == [0, 3, r - 3]


def test_a_matrix_keeps_its_entries_whatever_order_they_come_in() -> None:
    rng = random.Random(2)
    entries = [(rng.randrange(9), rng.randrange(50), rng.randrange(7)) for _ in range(200)]
    row, wire, coefficient = (np.array(c, dtype=np.uint32) for c in zip(*entries, strict=True))
    matrix = sparse_matrix(row, wire, coefficient, n_rows=12)
    found = [
        (i, int(matrix.wire[k]), int(matrix.coefficient[k]))
        for i in range(matrix.n_rows)
        for k in range(int(matrix.row_ptr[i]), int(matrix.row_ptr[i + 1]))
    ]
    assert matrix.n_rows == 12
    assert found == sorted(entries, key=lambda entry: entry[0])


def test_a_matrix_may_have_no_entries() -> None:
    none = np.zeros(0, dtype=np.uint32)
    matrix = sparse_matrix(none, none, none, n_rows=3)
    assert matrix.row_ptr.tolist() == [0, 0, 0, 0]
