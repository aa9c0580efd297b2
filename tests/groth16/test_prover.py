"""The algorithm against the reference backend, decided by the pairing oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from partita.groth16.curves import CURVES, curve_named
from partita.groth16.errors import FormatError, MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey
from partita.groth16.proof import Proof
from partita.groth16.prover import Stage, Stopped, _prove_with, check_witness, prove
from partita.groth16.reference import ReferenceBackend, ReferenceKey, ReferenceVector
from partita.groth16.reference_pairing import verify
from partita.groth16.verifying_key import VerifyingKey
from partita.groth16.witness import Witness
from tests.groth16.tiny_setup import Circuit, edge_circuits, product_circuit, set_up

FAMILY = pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)
CURVE = pytest.mark.parametrize("curve", CURVES)
BACKEND = ReferenceBackend()


def load(circuit: Circuit, curve: str, family: KeyFamily) -> tuple[ProvingKey, ReferenceKey]:
    key = set_up(circuit, curve, family)
    return key, BACKEND.load(key, check=False)


def holds(key: ProvingKey, circuit: Circuit, proof: Proof) -> bool:
    r = curve_named(key.curve).r
    statement = [v % r for v in circuit.witness[1 : circuit.n_public + 1]]
    return verify(VerifyingKey.of_proving_key(key), statement, proof)


@CURVE
@FAMILY
def test_a_proof_verifies_and_two_proofs_of_one_witness_differ(
    curve: str, family: KeyFamily
) -> None:
    circuit = product_circuit()
    key, loaded = load(circuit, curve, family)
    first = prove(BACKEND, loaded, circuit.witness_of(curve))
    second = prove(BACKEND, loaded, circuit.witness_of(curve))
    assert holds(key, circuit, first)
    assert holds(key, circuit, second)
    assert first.a != second.a
    assert first.b != second.b
    assert first.c != second.c


@FAMILY
@pytest.mark.parametrize("circuit", edge_circuits(), ids=lambda c: c.name)
def test_edge_circuits_prove(circuit: Circuit, family: KeyFamily) -> None:
    key, loaded = load(circuit, "bn254", family)
    assert holds(key, circuit, prove(BACKEND, loaded, circuit.witness_of("bn254")))


@CURVE
@FAMILY
def test_without_randomness_a_and_b_are_the_bare_sums(curve: str, family: KeyFamily) -> None:
    circuit = product_circuit()
    key, loaded = load(circuit, curve, family)
    proof = _prove_with(BACKEND, loaded, circuit.witness_of(curve), 0, 0)
    assert holds(key, circuit, proof)
    assert proof == _prove_with(BACKEND, loaded, circuit.witness_of(curve), 0, 0)


@CURVE
@FAMILY
@pytest.mark.parametrize("wire", [1, 3])
def test_a_witness_that_breaks_a_row_gives_a_proof_that_fails(
    curve: str, family: KeyFamily, wire: int
) -> None:
    circuit = product_circuit()
    key, loaded = load(circuit, curve, family)
    circuit.witness[wire] += 1
    assert not holds(key, circuit, prove(BACKEND, loaded, circuit.witness_of(curve)))


def test_a_proof_fails_against_another_statement() -> None:
    circuit = product_circuit()
    key, loaded = load(circuit, "bn254", KeyFamily.SNARKJS)
    proof = prove(BACKEND, loaded, circuit.witness_of("bn254"))
    circuit.witness[1] += 1
    assert not holds(key, circuit, proof)


def test_the_stages_come_in_order_and_the_release_before_the_sums() -> None:
    circuit = product_circuit()
    _, loaded = load(circuit, "bn254", KeyFamily.SNARKJS)
    seen: list[Stage | str] = []
    prove(
        BACKEND,
        loaded,
        circuit.witness_of("bn254"),
        stage=seen.append,
        released=lambda: seen.append("released"),
    )
    assert seen == [Stage.EVALUATE, Stage.QUOTIENT, "released", *list(Stage)[2:]]
    assert [s for s in Stage if not s.on_device] == [Stage.FINISH]


class _Recording(ReferenceKey):
    """A loaded key that remembers the vectors it made."""

    def __init__(self, key: ProvingKey) -> None:
        super().__init__(key, check=False)
        self.made: list[ReferenceVector] = []

    def witness(self, values: bytes | memoryview) -> ReferenceVector:
        self.made.append(super().witness(values))
        return self.made[-1]

    def evaluate(
        self, witness: object
    ) -> tuple[ReferenceVector, ReferenceVector, ReferenceVector | None]:
        rows = super().evaluate(witness)  # type: ignore[arg-type]
        self.made += [v for v in rows if v is not None]
        return rows


def _released(vector: ReferenceVector) -> bool:
    try:
        len(vector)
    except ValueError:
        return True
    return False


@FAMILY
@pytest.mark.parametrize("stage", Stage, ids=lambda s: s.value)
def test_a_stop_takes_effect_before_the_next_stage_and_frees_everything(
    family: KeyFamily, stage: Stage
) -> None:
    circuit = product_circuit()
    key = _Recording(set_up(circuit, "bn254", family))
    begun: list[Stage] = []

    def stop() -> bool:
        return len(begun) == list(Stage).index(stage)

    with pytest.raises(Stopped, match=f"before {stage.value}"):
        prove(BACKEND, key, circuit.witness_of("bn254"), stop=stop, stage=begun.append)
    assert begun == list(Stage)[: len(begun)]
    assert stage not in begun
    assert all(_released(vector) for vector in key.made)
    assert len(key.made) == (
        0 if stage is Stage.EVALUATE else 3 if family is KeyFamily.SNARKJS else 4
    )


def test_a_failing_stage_frees_everything() -> None:
    circuit = product_circuit()
    key = _Recording(set_up(circuit, "bn254", KeyFamily.SNARKJS))

    def fail(stage: Stage) -> None:
        if stage is Stage.MSM_B1:
            raise RuntimeError("the listener failed")

    with pytest.raises(RuntimeError, match="listener"):
        prove(BACKEND, key, circuit.witness_of("bn254"), stage=fail)
    assert key.made
    assert all(_released(vector) for vector in key.made)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            lambda w: dataclasses.replace(w, curve="bls12-381"),
            MismatchError,
            "curve of the witness differs: expected bn254, found bls12-381",
        ),
        (
            lambda w: dataclasses.replace(w, values=w.values[:-32]),
            MismatchError,
            "number of wires of the witness differs: expected 5, found 4",
        ),
        (lambda w: dataclasses.replace(w, values=w.values[:-1]), FormatError, "witness: 159 bytes"),
        (
            lambda w: dataclasses.replace(w, values=b"\2" + w.values[1:]),
            MismatchError,
            "wire 0 of the witness differs: expected 1, found 2",
        ),
    ],
    ids=["curve", "wires", "length", "constant"],
)
def test_a_witness_of_another_circuit_is_refused_by_name(
    change: Callable[[Witness], Witness], error: type[Exception], text: str
) -> None:
    circuit = product_circuit()
    _, loaded = load(circuit, "bn254", KeyFamily.SNARKJS)
    with pytest.raises(error, match=text):
        check_witness(loaded.head, change(circuit.witness_of("bn254")))
