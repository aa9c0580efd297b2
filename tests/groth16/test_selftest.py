"""Self-tests: honest backends pass, and each kind of wrong result is found where it arises."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from partita.groth16 import known_key, selftest
from partita.groth16.backend import Backend, KeyHead, LoadedKey, Pending, Ready, Vector
from partita.groth16.curves import CURVES, curve_named
from partita.groth16.errors import ComputeError
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import NativeBackend
from partita.groth16.reference import ReferenceBackend
from partita.groth16.selftest import KnownAnswers, Step

BOTH = [(curve, family) for curve in CURVES for family in KeyFamily]


class WrongKey:
    """A key whose sums over one query leave the last term out, or whose quotient is off."""

    def __init__(self, inner: LoadedKey, query: Query | None) -> None:
        self._inner = inner
        self._query = query

    @property
    def head(self) -> KeyHead:
        return self._inner.head

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def witness(self, values: bytes | memoryview) -> Vector:
        self._values = bytearray(values)
        return self._inner.witness(values)

    def evaluate(self, witness: Vector) -> tuple[Vector, Vector, Vector | None]:
        if self._query is None:
            self._values[2 * 32] ^= 1
            witness = self._inner.witness(bytes(self._values))
        return self._inner.evaluate(witness)

    def quotient(self, a: Vector, b: Vector, c: Vector | None) -> Vector:
        return self._inner.quotient(a, b, c)

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        return self._inner.msm(query, scalars, start, count - (query is self._query))

    def release(self) -> None:
        self._inner.release()


class WrongBackend(NativeBackend):
    """The native backend with `WrongKey`s; `loads` counts."""

    def __init__(self, query: Query | None) -> None:
        self._query = query
        self.loads = 0

    def load(self, key: ProvingKey, *, check: bool) -> WrongKey:  # type: ignore[override]
        self.loads += 1
        return WrongKey(super().load(key, check=check), self._query)


class NonLinear(WrongKey):
    """A loaded key that adds the generator to every sum of one query."""

    def __init__(self, inner: LoadedKey, query: Query) -> None:
        super().__init__(inner, None)
        self._shifted = query

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        total = self._inner.msm(query, scalars, start, count)
        if query is not self._shifted:
            return total
        curve = curve_named(self.head.curve)
        one = curve.g1.to_device(curve.g1.generator)
        if query is Query.B2:
            one = curve.g2.to_device(curve.g2.generator)
        group = "g2" if query is Query.B2 else "g1"
        points = [total.result(), one]
        return Ready(NativeBackend().lincomb(curve.name, group, points, [1, 1]))


@lru_cache
def proving(curve: str, family: KeyFamily) -> ProvingKey:
    return known_key.proving_key(curve, family).key


def failing(steps: list[Step]) -> list[str]:
    return [step.name for step in steps if not step.ok]


@pytest.mark.parametrize(("curve", "family"), BOTH, ids=lambda x: getattr(x, "value", x))
def test_the_native_backend_gives_every_known_answer(curve: str, family: KeyFamily) -> None:
    steps = list(selftest.known_answers(NativeBackend(), curve, family))
    assert failing(steps) == []
    assert len({step.name for step in steps}) == len(steps) == 12


def test_the_reference_backend_gives_every_known_answer() -> None:
    backend = ReferenceBackend()
    assert failing(list(selftest.known_answers(backend, "bn254", KeyFamily.BELLPERSON))) == []


@pytest.mark.parametrize("query", list(Query), ids=lambda query: query.value)
def test_a_wrong_sum_is_found_at_its_query_and_its_proof_does_not_verify(query: Query) -> None:
    steps = list(selftest.known_answers(WrongBackend(query), "bn254", KeyFamily.SNARKJS))
    names = failing(steps)
    assert names
    assert all(f"query {query.value}" in name for name in names if "query" in name)


def test_a_wrong_quotient_is_found() -> None:
    steps = list(selftest.known_answers(WrongBackend(None), "bn254", KeyFamily.SNARKJS))
    assert failing(steps) == [
        "bn254 snarkjs rows, transforms and sum, query h",
        "bn254 snarkjs proof verifies",
    ]


def test_known_answers_are_asked_once_and_a_wrong_one_is_remembered() -> None:
    backend = WrongBackend(Query.A)
    answers = KnownAnswers(backend)
    for _ in range(2):
        with pytest.raises(ComputeError, match="self-test: bn254 sum over edge values, query a"):
            answers.require("bn254", KeyFamily.SNARKJS)
    assert backend.loads == 1
    honest = KnownAnswers(NativeBackend())
    honest.require("bn254", KeyFamily.SNARKJS)
    honest.require("bn254", KeyFamily.SNARKJS)


@pytest.mark.parametrize(("curve", "family"), BOTH, ids=lambda x: getattr(x, "value", x))
def test_an_honest_key_is_consistent(curve: str, family: KeyFamily) -> None:
    backend: Backend = NativeBackend()
    key = backend.load(proving(curve, family), check=True)
    steps = list(selftest.consistency(backend, key))
    assert failing(steps) == []
    assert len(steps) == 6


@pytest.mark.parametrize("query", list(Query), ids=lambda query: query.value)
def test_sums_that_are_not_linear_are_found_at_their_query(query: Query) -> None:
    backend = NativeBackend()
    key = NonLinear(backend.load(proving("bls12-381", KeyFamily.SNARKJS), check=True), query)
    names = failing(list(selftest.consistency(backend, key)))
    assert f"query {query.value} is linear" in names
    assert not {name for name in names if "linear" in name} - {f"query {query.value} is linear"}


@pytest.mark.parametrize("curve", CURVES)
def test_b_queries_with_different_points_do_not_agree(curve: str) -> None:
    key = proving(curve, KeyFamily.BELLPERSON)
    size = curve_named(curve).g2.point_size_bytes
    points = bytes(key.queries[Query.B2])
    at = next(i for i in range(0, len(points), size) if any(points[i : i + size]))
    group = curve_named(curve).g2
    swapped = points[:at] + group.to_device(group.generator) + points[at + size :]
    backend = NativeBackend()
    loaded = backend.load(replace(key, queries={**key.queries, Query.B2: swapped}), check=True)
    assert failing(list(selftest.consistency(backend, loaded))) == ["queries b1 and b2 agree"]


@pytest.mark.parametrize("curve", CURVES)
def test_the_pairing_tells_equal_exponents_from_others(curve: str) -> None:
    g1, g2 = curve_named(curve).g1, curve_named(curve).g2

    def same(x: int, y: int) -> bool:
        p = g1.to_device(g1.mul(g1.generator, x))
        q = g2.to_device(g2.mul(g2.generator, y))
        return selftest._same_multiple(curve, p, q)

    assert same(5, 5)
    assert same(-2, -2)
    assert same(0, 0)
    assert not same(5, 6)
    assert not same(-2, 2)
    assert not same(0, 1)
    assert not same(1, 0)
