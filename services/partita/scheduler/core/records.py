"""The rows a store keeps: what a restarted scheduler needs, one upsert a change.

    record           key                        the store does
    JobAccepted      job_id                     insert the job's row and its inputs, once
    JobRecord        job_id                     upsert
    PartitionRecord  (job_id, index)            upsert; a partition without a row is fresh
    LeaseRecord      lease_id                   upsert
    LeaseEnded       lease_id                   delete that lease's row
    ProverRecord     prover_id                  upsert
    ProversForgotten prover_ids                 delete their rows
    PinRecord        (manifest, prover_id)      upsert; delete where `pinned` is None
    ClockMark        the only one               upsert
    JobForgotten     job_id                     delete the job's row, inputs and partitions

`events.Restored` gives them back: `JobAccepted` with the newest `JobRecord` in it.
Records are applied in the order of their numbers; a group commit may cut anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.scheduler.core.model import (
    Bytes,
    CrashMark,
    Failure,
    JobState,
    Mode,
    Outcome,
    PartitionSpec,
    PartitionState,
    Priority,
    StatementSource,
    Timings,
    Trust,
)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job without its partitions."""

    job_id: str
    job_seq: int
    request_id: str
    digest: bytes
    circuit_id: str
    manifest_sha256: bytes
    input_format: str
    priority: Priority
    state: JobState
    """OPEN or ENDED: a row that is read back is durable, so PENDING and ENDING do not occur."""
    outcome: Outcome | None
    failure: Failure | None
    deadline_ns: int | None
    retain_ns: int
    abandon_after_ns: int | None
    created_ns: int
    started_ns: int | None
    ended_ns: int | None
    labels: tuple[tuple[str, str], ...]
    retry_of: str = ""
    """The job whose retry it is."""


@dataclass(frozen=True, slots=True)
class JobAccepted:
    """A new job with its inputs; the acceptance is durable when this is."""

    job: JobRecord
    partitions: tuple[PartitionSpec, ...]


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """What has happened to one partition."""

    job_id: str
    index: int
    state: PartitionState
    """WAITING (leased or not), PROVED or DROPPED."""
    attempt: int
    failures: tuple[Failure, ...]
    crashes: tuple[CrashMark, ...]
    taken: tuple[str, ...]
    """Lease ids whose outcome was taken: a repeat does nothing."""
    proof: bytes
    statement: bytes
    """The statement the proof was verified against; empty unless PROVED."""
    statement_source: StatementSource
    prover_id: str
    """Who proved it."""
    proved_ns: int | None
    timings: Timings


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease that has the right to its partition."""

    lease_id: str
    job_id: str
    index: int
    attempt: int
    prover_id: str
    instance_id: str
    reserved: Bytes


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    """The right of that lease has ended."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class ProverRecord:
    """What outlives the sessions of a prover."""

    prover_id: str
    mode: Mode
    trust: Trust
    reason: str
    debits: int
    """Standing debits: unverifiable proofs of partitions that were proved after all."""
    proved: int
    failed: int
    trust_reason: str = ""
    quarantined_until_ns: int | None = None
    """End of a quarantine by score; None: until an operator releases it."""


@dataclass(frozen=True, slots=True)
class ProversForgotten:
    """These provers were away and left nothing that matters: their rows go."""

    prover_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PinRecord:
    """Whether a key is pinned on a prover; an empty prover_id: on all without their own row."""

    manifest_sha256: bytes
    prover_id: str
    pinned: bool | None
    """None: there is no such row any more."""


@dataclass(frozen=True, slots=True)
class ClockMark:
    """The clock's high-water mark: after a restart no time lies before it."""

    now_ns: int


@dataclass(frozen=True, slots=True)
class JobForgotten:
    """The retention of that job is over."""

    job_id: str


Record = (
    JobAccepted
    | JobRecord
    | PartitionRecord
    | LeaseRecord
    | LeaseEnded
    | ProverRecord
    | ProversForgotten
    | PinRecord
    | ClockMark
    | JobForgotten
)
