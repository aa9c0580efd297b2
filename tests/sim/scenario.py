"""How much goes wrong in a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """How much goes wrong, as chances per second of simulated time."""

    provers: int = 3
    jobs: int = 6
    chaos_s: float = 60.0
    kill_prover: float = 0.03
    pause_prover: float = 0.02
    cut_stream: float = 0.05
    kill_scheduler: float = 0.02
    stop_store: float = 0.02
    cancel: float = 0.02
    bad_proofs: float = 0.03
    failures: float = 0.03
    hangs: float = 0.02
    unchecked: float = 0.05
    liars: int = 0
    """So many provers' proofs never verify until the cluster heals."""
    quarantine: bool = True
    """Whether standing debits quarantine a prover."""
    check: bool = True
