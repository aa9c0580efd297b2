"""Native prove ÷ arkworks' prove: same circuit, witness and threads, in turns.

Measured on both sides: a finished witness in memory to a proof, key resident: evaluation, quotient
and the five sums. Each side has a key of its own set-up, proofs of both are verified.
"""

from __future__ import annotations

import os
import statistics
import time

from benchmarks.arkworks import Arkworks, version
from benchmarks.circuit import Mixed
from benchmarks.options import options
from benchmarks.report import Figure, Report, ratio
from partita.groth16.curves import CURVES
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend, set_threads
from partita.groth16.prover import Stage, prove
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from partita.groth16.witness import Witness

BOUND = 1.2
THREADS = 2
_SEED = 1


class Ours:
    """The native backend with a key of the circuit and the witness of the seed."""

    def __init__(self, circuit: Mixed, witness: Witness) -> None:
        key = set_up(circuit.system(), KeyFamily.SNARKJS, ToxicWaste.random(circuit.curve))
        self._backend = NativeBackend()
        self._key = self._backend.load(key, check=False)
        self._verifier = Verifier(VerifyingKey.of_proving_key(key))
        self._witness = witness
        self._statement = witness.statement(key.n_public)
        self.stages: dict[str, list[float]] = {}

    def prove(self) -> float:
        """Make one proof and check it; returns its seconds without the check."""
        begun: list[tuple[str, float]] = []

        def stage(next_stage: Stage) -> None:
            begun.append((next_stage.value, time.perf_counter()))

        start = time.perf_counter()
        proof = prove(self._backend, self._key, self._witness, stage=stage)
        end = time.perf_counter()
        ends = [at for _, at in begun[1:]] + [end]
        for (name, at), until in zip(begun, ends, strict=True):
            self.stages.setdefault(name, []).append(until - at)
        assert self._verifier.verify(self._statement, proof.to_bytes())
        return end - start

    def note(self) -> str:
        """The median of each stage."""
        medians = (
            f"{name} {statistics.median(values):.3f}" for name, values in self.stages.items()
        )
        return f"our stages in s: {', '.join(medians)}"


def measure(curve: str, log_size: int, rounds: int) -> Figure:
    """Take turns on one curve and size."""
    circuit = Mixed.of_domain(curve, log_size)
    witness = circuit.witness(_SEED)
    ours = Ours(circuit, witness)
    with Arkworks(circuit, _SEED, THREADS) as theirs:
        assert theirs.statement == witness.statement(2), "the two prove different statements"
        theirs.prove()
        ours.prove()
        ours.stages.clear()
        pairs = [(ours.prove(), theirs.prove()) for _ in range(rounds)]
    return ratio(
        f"{curve}, 2^{log_size} constraints",
        ("partita", [pair[0] for pair in pairs]),
        ("ark-groth16", [pair[1] for pair in pairs]),
        high=BOUND,
        note=ours.note(),
    )


def main() -> None:
    """Measure both curves at both sizes."""
    given = options(__doc__, rounds=5)
    cpus = sorted(os.sched_getaffinity(0))[:THREADS]
    os.sched_setaffinity(0, cpus)
    set_threads(THREADS)
    figures = [
        measure(curve, log_size, given.rounds if log_size < 18 else max(given.rounds - 2, 2))
        for log_size in ((12, 14) if given.quick else (16, 18))
        for curve in CURVES
    ]
    Report(
        "prove",
        "Prove ÷ ark-groth16",
        f"{THREADS} threads each, half bit rows and half dense rows, the median of rounds in "
        "turns. The peer is built for this very machine with its assembly, our extension is the "
        "portable one.",
        figures,
        given.quick,
        {"ark-groth16": version()},
    ).save()


if __name__ == "__main__":
    main()
