"""The mutable rows of the core's tables. Only the core's own modules see them.

    Job ── has ──> Partition ── right ──> Lease ── held in ──> Session ── of ──> Prover
                                                                  └── KeyEntry, Ledger

A lease that is GONE has no row. A lease without a session (ADRIFT, or CHECKING / SETTLING
after its session closed) is in its prover's `detached`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from partita.scheduler.core.budget import Ledger
from partita.scheduler.core.model import (
    NOTHING,
    Actual,
    Bytes,
    CircuitOffer,
    CrashMark,
    Failure,
    HeldLease,
    Hello,
    JobState,
    LeaseOrder,
    Mode,
    Outcome,
    PartitionSpec,
    PartitionState,
    Phase,
    Priority,
    StatementSource,
    Timings,
    Trust,
)

PartitionKey = tuple[int, int, int]
"""(-priority, job_seq, index): the least goes first."""


class LeaseState(IntEnum):
    """States of a lease that has a row; see the design's table."""

    GRANTED = 1
    HELD = 2
    CHECKING = 3
    SETTLING = 4
    LEAVING = 5
    ADRIFT = 6


IN_DESIRED = frozenset(
    {LeaseState.GRANTED, LeaseState.HELD, LeaseState.CHECKING, LeaseState.SETTLING}
)


class LaneKey(NamedTuple):
    """Waiting partitions with the same lane key can start on the same provers."""

    manifest_sha256: bytes
    circuit_id: str
    input_format: str
    excluded: frozenset[str]
    alone: bool
    critical: bool
    """Provers on probation take no CRITICAL work."""


@dataclass(slots=True, eq=False)
class Job:
    job_id: str
    job_seq: int
    request_id: str
    digest: bytes
    circuit_id: str
    manifest_sha256: bytes
    input_format: str
    priority: Priority
    deadline_ns: int | None
    retain_ns: int
    abandon_after_ns: int | None
    created_ns: int
    labels: tuple[tuple[str, str], ...]
    retry_of: str = ""
    """The job whose retry it is; its proofs were taken over."""
    state: JobState = JobState.PENDING
    outcome: Outcome | None = None
    failure: Failure | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    partitions: list[Partition] = field(default_factory=list)
    n_proved: int = 0
    waiters: dict[int, None] = field(default_factory=dict)
    callers: list[tuple[int, bool]] = field(default_factory=list)
    """(caller, attached) of submissions that wait for the acceptance to be durable."""
    end_record: int = 0
    """Number of the record that makes the outcome durable."""


@dataclass(slots=True, eq=False)
class Partition:
    job: Job
    index: int
    spec: PartitionSpec
    statement_sha256: bytes
    queued_ns: int
    state: PartitionState = PartitionState.WAITING
    attempt: int = 0
    failures: tuple[Failure, ...] = ()
    crashes: tuple[CrashMark, ...] = ()
    taken: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()
    lease: Lease | None = None
    """The one lease with the right; it may be SETTLING while the partition is PROVED."""
    lane: LaneKey | None = None
    ticket: int = 0
    """Names its live entry in its lane's heap."""
    backing_off: bool = False
    preparing: int | None = None
    """The session that evicts keys for it."""
    proof: bytes = b""
    statement: bytes = b""
    statement_source: StatementSource = StatementSource.UNSPECIFIED
    verified_sha256: bytes = b""
    """SHA-256 of proof and statement as the verifier saw them when it said VALID."""
    prover_id: str = ""
    proved_ns: int | None = None
    proved_record: int = 0
    timings: Timings = field(default_factory=Timings)

    @property
    def key(self) -> PartitionKey:
        """Its place in the queue."""
        return (-self.job.priority, self.job.job_seq, self.index)

    @property
    def open(self) -> bool:
        """Tell whether somebody may still prove it."""
        return (
            self.state in (PartitionState.WAITING, PartitionState.LEASED)
            and self.job.state is JobState.OPEN
        )

    @property
    def diagnose(self) -> bool:
        """Tell whether the next lease looks at every row: after an UNVERIFIED."""
        return any(f.kind.name == "UNVERIFIED" for f in self.failures)


@dataclass(slots=True, eq=False)
class Lease:
    lease_id: str
    part: Partition | None
    """None: a prover lists it for a job that is unknown here."""
    attempt: int
    prover_id: str
    instance_id: str
    session: int | None
    state: LeaseState
    reserved: Bytes
    timeout_ns: int
    fetch_timeout_ns: int
    grant_revision: int
    granted_ns: int
    express: bool = False
    alone: bool = False
    diagnose: bool = False
    removal_revision: int = 0
    listed: bool = False
    slot: bool = False
    """It occupies a slot of its session: it has shown no outcome."""
    stuck: Bytes = NOTHING
    """Charge taken off its prover's usable total, once LEAVING for too long."""
    phase: Phase = Phase.UNSPECIFIED
    permille: int = 0
    phase_since_ns: int = 0
    clock_used_ns: int = 0
    shown: HeldLease | None = None
    """What the last Actual said of it, once that is taken in; None: it did not list it."""
    order: LeaseOrder | None = None
    """What the last Desired said of it; its inline input and its priority may change."""

    @property
    def has_right(self) -> bool:
        """Tell whether it has the right to its partition."""
        return self.part is not None and self.part.lease is self


class KeyState(IntEnum):
    """States of a proving key on a session; an ABSENT one has no row."""

    WANTED = 1
    LOADING = 2
    READY = 3
    LEAVING = 4
    FAILED = 5


@dataclass(slots=True, eq=False)
class KeyEntry:
    manifest_sha256: bytes
    state: KeyState
    offered: Bytes
    wanted: bool
    shown: Bytes = NOTHING
    revision: int = 0
    """Desired revision of the last change of `wanted`."""
    references: int = 0
    """Leases on this session, not GONE, that use it."""
    used_ns: int = 0
    evicting: bool = False
    """An operator evicts it: it is unwanted as soon as it is idle."""
    reason: str = ""

    @property
    def hot(self) -> bool:
        """Tell whether it is wanted and not FAILED."""
        return self.wanted and self.state is not KeyState.FAILED


@dataclass(slots=True, eq=False)
class Session:
    number: int
    prover_id: str
    hello: Hello
    ledger: Ledger
    opened_ns: int
    offers: dict[bytes, CircuitOffer] = field(default_factory=dict)
    synced: bool = False
    unresponsive: bool = False
    actual: Actual | None = None
    last_seen_ns: int = 0
    last_seen_peer_ns: int = 0
    revision: int = 0
    applied: int = 0
    awaited_revision: int = 0
    """The revision whose application the STUCK deadline waits for; 0: none."""
    leases: dict[str, Lease] = field(default_factory=dict)
    keys: dict[bytes, KeyEntry] = field(default_factory=dict)
    pinned: dict[bytes, None] = field(default_factory=dict)
    """Keys that it offers, can use, and shall keep."""
    used_slots: int = 0
    used_express: int = 0
    alone: Lease | None = None
    preparing: Partition | None = None
    stuck: Bytes = NOTHING


@dataclass(slots=True, eq=False)
class Prover:
    prover_id: str
    mode: Mode = Mode.ACTIVE
    trust: Trust = Trust.TRUSTED
    reason: str = ""
    """Why an operator set the mode."""
    trust_reason: str = ""
    """Why it is not TRUSTED."""
    quarantined_until_ns: int | None = None
    """End of a quarantine by score; None: until an operator releases it."""
    debits: int = 0
    proved: int = 0
    failed: int = 0
    session: int | None = None
    instance_id: str = ""
    offers: dict[bytes, CircuitOffer] = field(default_factory=dict)
    peaks: dict[bytes, Bytes] = field(default_factory=dict)
    """Raised peaks, until another instance or a changed offer."""
    failed_keys: dict[bytes, str] = field(default_factory=dict)
    last_failure: Failure | None = None
    """Of this instance; shown only."""
    detached: dict[str, Lease] = field(default_factory=dict)
    hello: Hello | None = None
    last_seen_ns: int | None = None


@dataclass(slots=True, eq=False)
class Check:
    """A proof at the verifier, or waiting to be given to it again."""

    check_id: int
    part: Partition
    lease_id: str
    prover_id: str
    attempt: int
    proof: bytes
    statement: bytes
    statement_source: StatementSource
    timings: Timings
    """As the prover gave them."""
    queue_ns: int
    started_ns: int
    retries: int = 0
    in_flight: bool = True
