"""What an API may show of the core: frozen copies, no reference into the tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from partita.scheduler.core.model import (
    Actual,
    BlobRef,
    Bytes,
    Desired,
    Failure,
    Hello,
    Mode,
    Outcome,
    PartitionState,
    Phase,
    Priority,
    StatementSource,
    Timings,
    Trust,
)


class PublicState(IntEnum):
    """The wire's JobState."""

    QUEUED = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4
    CANCELLED = 5


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as clients see it; an outcome shows only when it is durable."""

    job_id: str
    job_seq: int
    request_id: str
    digest: bytes
    circuit_id: str
    manifest_sha256: bytes
    input_format: str
    state: PublicState
    outcome: Outcome | None
    priority: Priority
    failure: Failure | None
    n_partitions: int
    partitions_done: int
    partitions_ahead: int
    created_ns: int
    started_ns: int | None
    ended_ns: int | None
    deadline_ns: int | None
    expected_end_ns: int | None
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition; `proof` and `statement` are set once PROVED is durable."""

    job_id: str
    index: int
    state: PartitionState
    phase: Phase
    permille: int
    prover_id: str
    attempt: int
    waiting_for: str
    proof: bytes
    statement: bytes
    statement_sha256: bytes
    statement_source: StatementSource
    failures: tuple[Failure, ...]
    crashes: int
    timings: Timings
    input: BlobRef


@dataclass(frozen=True, slots=True)
class ProverView:
    """One prover: what it said, what it holds, what it should hold."""

    prover_id: str
    session: int | None
    hello: Hello | None
    actual: Actual | None
    desired: Desired | None
    mode: Mode
    trust: Trust
    reason: str
    charged: Bytes
    proved: int
    failed: int
    last_failure: Failure | None
    failed_keys: tuple[str, ...]
    debits: int
    last_seen_ns: int | None
    unresponsive: bool
    accepting: bool


@dataclass(frozen=True, slots=True)
class LaneView:
    """Waiting partitions that any prover treats alike."""

    circuit_id: str
    input_format: str
    excluded: tuple[str, ...]
    alone: bool
    waiting: int
    head_job_id: str
    head_index: int
    waiting_for: str


@dataclass(frozen=True, slots=True)
class CircuitLoad:
    """Open work of one circuit."""

    circuit_id: str
    open_jobs: int
    waiting: int
    leased: int


@dataclass(frozen=True, slots=True)
class FleetView:
    """The whole fleet at one moment."""

    epoch: int
    provers: tuple[ProverView, ...]
    lanes: tuple[LaneView, ...]
    jobs_open: int
    circuits: tuple[CircuitLoad, ...]
