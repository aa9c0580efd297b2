"""The peer ark-groth16: builds `peers/arkworks` and asks it for proofs, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from benchmarks.report import BUILD

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from benchmarks.circuit import Mixed

_CRATE = Path(__file__).parent / "peers" / "arkworks"
FLAGS = "-C target-cpu=native"
"""The peer may use everything this machine has, its assembly included; our wheel is portable."""


def build() -> Path:
    """Build the peer, unless it is built; returns the program."""
    target = BUILD / "arkworks"
    subprocess.run(
        [
            *("cargo", "build", "--quiet", "--locked", "--release", "--features", "asm"),
            *("--manifest-path", str(_CRATE / "Cargo.toml"), "--target-dir", str(target)),
        ],
        check=True,
        env={**os.environ, "RUSTFLAGS": FLAGS},
    )
    return target / "release" / "arkworks-peer"


def version() -> str:
    """The peer's version and how it is built."""
    packages = tomllib.loads((_CRATE / "Cargo.lock").read_text())["package"]
    number = next(p["version"] for p in packages if p["name"] == "ark-groth16")
    return f"{number} (parallel, asm, {FLAGS})"


class Arkworks:
    """A running peer with its key and witness ready.

    Args:
        circuit: what it proves.
        seed: of the witness.
        threads: of its pool.

    Attributes:
        statement: its public inputs, in the wire's form.
        setup_s: the time of its own set-up.
    """

    def __init__(self, circuit: Mixed, seed: int, threads: int) -> None:
        self._process = subprocess.Popen(
            [str(build()), circuit.curve, str(circuit.n_constraints), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
            text=True,
        )
        ready = self._read()
        assert ready["threads"] == threads
        assert ready["n_constraints"] == circuit.n_constraints
        self.statement = bytes.fromhex(ready["statement"])
        self.setup_s = float(ready["setup_s"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cast("IO[str]", self._process.stdin).close()
        self._process.wait()

    def prove(self) -> float:
        """Make one proof, which the peer verifies; returns its seconds without the check."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write("prove\n")
        stdin.flush()
        return float(self._read()["seconds"])

    def _read(self) -> dict[str, Any]:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"the peer ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
