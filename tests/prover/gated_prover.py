"""A prover whose proofs wait on the device until a file is there: `gated_prover.py FILE`.

All else is the real program with the reference backend, configured by the environment.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from partita.groth16.reference import ReferenceBackend, ReferenceKey, ReferenceVector
from partita.prover import app
from partita.prover.config import ProverConfig
from partita.service.config import load
from tests.prover.whole import proves

if TYPE_CHECKING:
    from partita.groth16.backend import Backend, Vector
    from partita.groth16.keys import ProvingKey

_POLL_S = 0.01


class _GatedKey(ReferenceKey):
    def __init__(self, key: ProvingKey, gate: Path, *, check: bool) -> None:
        super().__init__(key, check=check)
        self._gate = gate

    def evaluate(
        self, witness: Vector
    ) -> tuple[ReferenceVector, ReferenceVector, ReferenceVector | None]:
        while proves() and not self._gate.exists():
            time.sleep(_POLL_S)
        return super().evaluate(witness)


class _GatedBackend(ReferenceBackend):
    def __init__(self, gate: Path) -> None:
        self._gate = gate

    def load(self, key: ProvingKey, *, check: bool) -> ReferenceKey:
        return _GatedKey(key, self._gate, check=check)


def main(gate: Path) -> int:
    """Run the prover until it ends."""

    def gated(_: Backend) -> Backend:
        return _GatedBackend(gate)

    return app.main(load(ProverConfig, {}, "environment"), gated)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
