"""A prover with one fault in its backend: `python faulty_prover.py`, configured like a prover.

Everything but the backend's heavy calls is the real program. The fault comes in the environment
variable PARTITA_TEST_FAULT as the JSON of a `Fault`.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import partita_native

from partita.groth16 import native
from partita.groth16.backend import Backend, KeyHead, LoadedKey, Pending, Vector
from partita.groth16.keys import ProvingKey, Query
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness
from partita.prover import app
from partita.prover.config import ProverConfig
from partita.service import logs
from partita.service.config import load

VARIABLE = "PARTITA_TEST_FAULT"


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and what is written down.

    Attributes:
        journal: a file that gets a line for each proof that begins, that comes to a gate, and that
            begins its last sum: "begin", "gate" or "last", its statement in hex, the prover.
        gate: a file; a proof waits in the middle while another process locks it.
        gate_from: the first proof of the process that waits, counted from 1.
        panics: so many proofs, from the first on, panic in native code.
        wrong: proofs are well formed and do not verify.
        dies: the process kills itself in the middle of its first proof.
    """

    journal: str = ""
    gate: str = ""
    gate_from: int = 1
    panics: int = 0
    wrong: bool = False
    dies: bool = False

    def environment(self) -> dict[str, str]:
        """What a process needs to have this fault."""
        return {VARIABLE: json.dumps(asdict(self))}


class FaultyBackend:
    """A backend whose proofs have a fault; loading keys and checking rows are as they are."""

    def __init__(self, inner: Backend, fault: Fault, prover_id: str) -> None:
        self._inner = inner
        self._fault = fault
        self._prover_id = prover_id
        self.name = inner.name
        self.begun = 0

    def load(self, key: ProvingKey, *, check: bool) -> FaultyKey:
        loaded = self._inner.load(key, check=check)
        return FaultyKey(loaded, self._fault, self._prover_id, self._begin)

    def lincomb(self, *arguments: Any) -> bytes:
        return self._inner.lincomb(*arguments)

    def check_rows(self, r1cs: R1cs, witness: Witness) -> int | None:
        return self._inner.check_rows(r1cs, witness)

    def _begin(self) -> int:
        self.begun += 1
        return self.begun


def _proves() -> bool:
    """Whether this is the thread of proofs: self-tests pass, or nothing would be offered."""
    return threading.current_thread().name.startswith("device")


class FaultyKey:
    """A loaded key; a proof begins with `witness` and is in its middle at the first MSM."""

    def __init__(
        self, inner: LoadedKey, fault: Fault, prover_id: str, begin: Callable[[], int]
    ) -> None:
        self._inner = inner
        self._fault = fault
        self._prover_id = prover_id
        self._begin = begin
        self._number = 0
        self._statement = ""

    @property
    def head(self) -> KeyHead:
        return self._inner.head

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def witness(self, values: bytes | memoryview) -> Vector:
        if _proves():
            self._number = self._begin()
            self._statement = bytes(values[32 : 32 * (1 + self._inner.head.n_public)]).hex()
            self._write("begin")
        return self._inner.witness(values)

    def evaluate(self, witness: Vector) -> tuple[Vector, Vector, Vector | None]:
        return self._inner.evaluate(witness)

    def quotient(self, a: Vector, b: Vector, c: Vector | None) -> Vector:
        return self._inner.quotient(a, b, c)

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        if query is Query.H and _proves():
            self._middle()
        if query is Query.C and _proves():
            self._write("last")
            count -= self._fault.wrong
        return self._inner.msm(query, scalars, start, count)

    def release(self) -> None:
        self._inner.release()

    def _middle(self) -> None:
        if self._fault.dies:
            os.abort()
        if self._number <= self._fault.panics:
            with native._translated("fault"):
                partita_native.panic_for_test("a fault of this test")
        if self._fault.gate and self._number >= self._fault.gate_from:
            self._write("gate")
            with Path(self._fault.gate).open("rb") as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)

    def _write(self, word: str) -> None:
        """One write, so that the lines of several processes never mix."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self._fault.journal, flags, 0o600)
        os.write(descriptor, f"{word} {self._statement} {self._prover_id}\n".encode())
        os.close(descriptor)


def main() -> int:
    """Run the prover that the environment describes."""
    fault = Fault(**json.loads(os.environ[VARIABLE]))
    config = load(ProverConfig, {}, "environment")
    logs.configure(level=config.log_level)
    return app.main(config, wrap=lambda backend: FaultyBackend(backend, fault, config.prover_id))


if __name__ == "__main__":
    sys.exit(main())
