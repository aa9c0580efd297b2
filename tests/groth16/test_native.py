"""The native backend against the reference, byte for byte, and its errors by name."""

from __future__ import annotations

import dataclasses
import hashlib

import partita_native
import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.errors import (
    ComputeError,
    EncodingError,
    FormatError,
    MismatchError,
    ResourceError,
)
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import (
    NativeBackend,
    NativeKey,
    _translated,
    build_info,
    check_point,
    stamps,
)
from partita.groth16.prover import Stage, Stopped, _prove_with, prove
from partita.groth16.reference import ReferenceBackend
from tests.groth16.test_curves import off_subgroup
from tests.groth16.tiny_setup import Circuit, edge_circuits, product_circuit, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
FAMILY = pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)
NATIVE, REFERENCE = NativeBackend(), ReferenceBackend()


def scalars(curve: Curve, seed: str, count: int) -> list[int]:
    """Scalars that look random and are always the same."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed}/{i}".encode()).digest(), "little") % curve.r
        for i in range(count)
    ]


def encoded(values: list[int]) -> bytes:
    return b"".join(v.to_bytes(32, "little") for v in values)


def long_circuit(n_rows: int) -> Circuit:
    """A chain of squarings long enough for every path of the native code's small sizes."""
    values = [1, 3]
    for _ in range(n_rows):
        values.append(values[-1] ** 2 % CURVES["bn254"].r)
    rows = [({i + 1: 1}, {i + 1: 1}, {i + 2: 1}) for i in range(n_rows)]
    return Circuit(1, n_rows + 2, list(rows), values, "long")


@CURVE
@FAMILY
@pytest.mark.parametrize("circuit", [product_circuit(), *edge_circuits()], ids=lambda c: c.name)
def test_native_and_reference_give_the_same_bytes(
    curve: Curve, family: KeyFamily, circuit: Circuit
) -> None:
    key = set_up(circuit, curve.name, family)
    native, reference = NATIVE.load(key, check=True), REFERENCE.load(key, check=False)
    witness = circuit.witness_of(curve.name)
    for r, s in ((0, 1), (1, curve.r - 1), tuple(scalars(curve, "rs", 2))):
        ours = _prove_with(NATIVE, native, witness, r, s)
        assert ours.to_bytes() == _prove_with(REFERENCE, reference, witness, r, s).to_bytes()


@CURVE
@FAMILY
def test_they_agree_on_a_witness_that_breaks_a_row(curve: Curve, family: KeyFamily) -> None:
    circuit = product_circuit()
    key = set_up(circuit, curve.name, family)
    circuit.witness[3] += 1
    witness = circuit.witness_of(curve.name)
    native, reference = NATIVE.load(key, check=False), REFERENCE.load(key, check=False)
    assert _prove_with(NATIVE, native, witness, 2, 3) == _prove_with(
        REFERENCE, reference, witness, 2, 3
    )


@FAMILY
def test_they_agree_on_every_stage_of_a_longer_circuit(family: KeyFamily) -> None:
    circuit = long_circuit(100)
    key = set_up(circuit, "bn254", family)
    native, reference = NATIVE.load(key, check=False), REFERENCE.load(key, check=False)
    values = circuit.witness_of("bn254").values
    w, oracle_w = native.witness(values), reference.witness(values)
    rows, oracle_rows = native.evaluate(w), reference.evaluate(oracle_w)
    for row, oracle in zip(rows, oracle_rows, strict=True):
        assert (row is None) == (oracle is None)
        if row is not None and oracle is not None:
            assert row.to_bytes() == encoded(oracle.values)
    h, oracle_h = native.quotient(*rows), reference.quotient(*oracle_rows)
    assert h.to_bytes() == encoded(oracle_h.values)
    for query in Query:
        count = native.head.count(query)
        vector, oracle_vector = (h, oracle_h) if query is Query.H else (w, oracle_w)
        start = len(vector) - count if query is Query.C else 0
        assert (
            native.msm(query, vector, start, count).result()
            == reference.msm(query, oracle_vector, start, count).result()
        ), query


@CURVE
@pytest.mark.parametrize("group_name", ["g1", "g2"])
def test_linear_combinations_agree_on_adversarial_points(curve: Curve, group_name: str) -> None:
    # Equal, opposite and neutral points, an arithmetic progression, zero and one as scalars.
    def devices() -> list[bytes]:
        if group_name == "g1":
            g1 = curve.g1
            multiples = [g1.mul(g1.generator, k) for k in (1, 1, -1, 0, 2, 3, 4, 5)]
            return [g1.to_device(p) for p in multiples]
        g2 = curve.g2
        return [g2.to_device(g2.mul(g2.generator, k)) for k in (1, 1, -1, 0, 2, 3, 4, 5)]

    points = devices()
    for factors in ([1] * 8, [0] * 8, [1, 0, 1, 5, 0, 0, 0, 0], scalars(curve, group_name, 8)):
        assert NATIVE.lincomb(curve.name, group_name, points, factors) == REFERENCE.lincomb(
            curve.name, group_name, points, factors
        )


@CURVE
def test_the_first_broken_row_is_the_reference_s(curve: Curve) -> None:
    for circuit in edge_circuits():
        assert NATIVE.check_rows(circuit.r1cs(curve.name), circuit.witness_of(curve.name)) is None
    circuit = product_circuit()
    for wire in (1, 2, 3, 4):
        values = list(circuit.witness)
        values[wire] += 1
        case = circuit.r1cs(curve.name), circuit.witness_of(curve.name, values)
        assert NATIVE.check_rows(*case) == REFERENCE.check_rows(*case)
    with pytest.raises(MismatchError, match="number of wires"):
        NATIVE.check_rows(
            product_circuit().r1cs(curve.name), circuit.witness_of(curve.name, [1, 2])
        )


def _with_point(key: ProvingKey, query: Query, index: int, point: bytes) -> ProvingKey:
    data = bytes(key.queries[query])
    at = index * len(point)
    queries = {**key.queries, query: data[:at] + point + data[at + len(point) :]}
    return dataclasses.replace(key, queries=queries)


@CURVE
@pytest.mark.parametrize("query", Query, ids=lambda q: q.value)
def test_a_bad_point_of_a_query_is_named_when_points_are_checked(
    curve: Curve, query: Query
) -> None:
    key = set_up(product_circuit(), curve.name, KeyFamily.SNARKJS)
    if query is Query.B2:
        off = curve.g2.to_device(off_subgroup(curve.g2))
    else:
        x, y = curve.g1.generator
        off = curve.g1.to_device((x, y + 1))
    broken = _with_point(key, query, 1, off)
    for backend in (NATIVE, REFERENCE):
        with pytest.raises(EncodingError, match=rf"^query {query.value}\[1\]: "):
            backend.load(broken, check=True)
        backend.load(broken, check=False)


@CURVE
@pytest.mark.parametrize(
    "name", ["alpha_g1", "beta_g1", "delta_g1", "beta_g2", "gamma_g2", "delta_g2"]
)
def test_a_bad_single_point_is_named(curve: Curve, name: str) -> None:
    key = set_up(product_circuit(), curve.name, KeyFamily.BELLPERSON)
    broken = dataclasses.replace(key, **{name: b"\1" + getattr(key, name)[1:]})
    for backend in (NATIVE, REFERENCE):
        with pytest.raises(EncodingError, match=f"^{name}: "):
            backend.load(broken, check=True)


@CURVE
def test_a_bad_point_of_ic_is_named(curve: Curve) -> None:
    key = set_up(product_circuit(), curve.name, KeyFamily.SNARKJS)
    broken = dataclasses.replace(key, ic=key.ic[:-1] + b"\1")
    for backend in (NATIVE, REFERENCE):
        with pytest.raises(EncodingError, match=r"^ic\[1\]: "):
            backend.load(broken, check=True)


@CURVE
def test_check_point_names_the_point_without_an_index(curve: Curve) -> None:
    check_point(curve.name, "g1", curve.g1.to_device(curve.g1.generator), "tau")
    with pytest.raises(EncodingError, match=r"^tau: off the curve"):
        check_point(curve.name, "g1", curve.g1.to_device((5, 5)), "tau")


@CURVE
def test_a_witness_value_not_below_r_is_named(curve: Curve) -> None:
    circuit = product_circuit()
    key = NATIVE.load(set_up(circuit, curve.name, KeyFamily.SNARKJS), check=False)
    values = bytes(circuit.witness_of(curve.name).values)
    wrong = values[:96] + curve.r.to_bytes(32, "little") + values[128:]
    with pytest.raises(EncodingError, match=r"^witness\[3\]: "):
        prove(NATIVE, key, dataclasses.replace(circuit.witness_of(curve.name), values=wrong))


def test_a_malformed_key_is_refused_by_every_backend_before_it_is_used() -> None:
    key = set_up(product_circuit(), "bn254", KeyFamily.SNARKJS)
    for backend in (NATIVE, REFERENCE):
        with pytest.raises(MismatchError, match="bytes of query h"):
            backend.load(dataclasses.replace(key, domain_size=16), check=False)


def test_a_panic_is_a_compute_error_and_the_backend_goes_on() -> None:
    with pytest.raises(ComputeError, match="panicked: bucket 7"), _translated("witness"):
        partita_native.panic_for_test("bucket 7")
    circuit = product_circuit()
    key = NATIVE.load(set_up(circuit, "bn254", KeyFamily.SNARKJS), check=False)
    assert prove(NATIVE, key, circuit.witness_of("bn254")).curve == "bn254"


def test_refused_memory_is_a_resource_error_and_other_refusals_name_the_place() -> None:
    with pytest.raises(ResourceError, match="96 bytes"), _translated("witness"):
        raise MemoryError("96 bytes of memory were refused")
    with pytest.raises(FormatError, match=r"^verifying key: "), _translated("verifying key"):
        partita_native.VerifyingKey("bn254", b"")


class _Recording(NativeKey):
    """A loaded key that remembers the vectors it made."""

    def __init__(self, key: ProvingKey) -> None:
        super().__init__(key, check=False)
        self.made: list[partita_native.Scalars] = []

    def witness(self, values: bytes | memoryview) -> partita_native.Scalars:
        self.made.append(super().witness(values))
        return self.made[-1]

    def quotient(self, *rows: object) -> partita_native.Scalars:
        self.made += [v for v in rows if isinstance(v, partita_native.Scalars)]
        self.made.append(super().quotient(*rows))  # type: ignore[arg-type]
        return self.made[-1]


def mapped_bytes(vector: partita_native.Scalars) -> int:
    try:
        return vector.size_bytes
    except ValueError as error:
        assert "released" in str(error)  # noqa: PT017 - any other refusal is a failure
        return 0


@FAMILY
def test_a_stop_between_the_sums_gives_all_memory_back(family: KeyFamily) -> None:
    circuit = product_circuit()
    key = _Recording(set_up(circuit, "bn254", family))
    begun: list[Stage] = []
    held: list[int] = []

    def stop() -> bool:
        return Stage.MSM_A in begun

    def released() -> None:
        held.append(sum(mapped_bytes(v) for v in key.made))

    with pytest.raises(Stopped, match="before msm_b1"):
        prove(
            NATIVE,
            key,
            circuit.witness_of("bn254"),
            stop=stop,
            stage=begun.append,
            released=released,
        )
    # The release leaves the witness and the quotient, which lies in the memory of one vector.
    assert held == [32 * (5 + 8)]
    assert sum(mapped_bytes(v) for v in key.made) == 0


def test_vectors_of_another_backend_are_refused() -> None:
    circuit = product_circuit()
    data = set_up(circuit, "bn254", KeyFamily.SNARKJS)
    native, reference = NATIVE.load(data, check=False), REFERENCE.load(data, check=False)
    w = reference.witness(circuit.witness_of("bn254").values)
    with pytest.raises(TypeError, match="ReferenceVector"):
        native.evaluate(w)
    with pytest.raises(TypeError, match="Scalars"):
        reference.evaluate(native.witness(circuit.witness_of("bn254").values))


def test_a_released_key_is_gone() -> None:
    key = NATIVE.load(set_up(product_circuit(), "bn254", KeyFamily.SNARKJS), check=False)
    assert key.size_bytes > 0
    key.release()
    key.release()
    with pytest.raises(ValueError, match="released"):
        _ = key.size_bytes


def test_work_raises_the_stamps_and_the_build_says_what_it_is() -> None:
    before = stamps()
    circuit = product_circuit()
    key = NATIVE.load(set_up(circuit, "bn254", KeyFamily.SNARKJS), check=False)
    prove(NATIVE, key, circuit.witness_of("bn254"))
    assert stamps() > before
    assert build_info()["version"]
