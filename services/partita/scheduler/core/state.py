"""The core's whole state and its outbox; every other module is a set of rules over it.

`State` owns the tables and turns decisions into effects: `persist` numbers records, `touch`
marks a session whose Desired changed, `changed` marks a job whose view changed. `begin` and
`finish` frame one turn of the machine. It takes no decision itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum

from partita.scheduler.core.config import CoreConfig
from partita.scheduler.core.effects import Effect, JobChanged, Persist, SyncProver
from partita.scheduler.core.model import CircuitInfo, JobState, PartitionState
from partita.scheduler.core.queue import WaitingQueue
from partita.scheduler.core.records import (
    ClockMark,
    JobRecord,
    PartitionRecord,
    ProverRecord,
    Record,
)
from partita.scheduler.core.tables import (
    Check,
    Job,
    LaneKey,
    Lease,
    Partition,
    PartitionKey,
    Prover,
    Session,
)
from partita.scheduler.core.timers import PeerClock, Timers


class After(IntEnum):
    """What happens once a record is durable."""

    ACCEPT = 1
    """A new job opens and its callers are answered."""
    ATTACH = 2
    """A caller that attached is answered."""
    END = 3
    """A job's outcome becomes visible."""
    SETTLE = 4
    """A lease whose partition is proved leaves Desired."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One grant of the current turn, kept for `check` (I7)."""

    key: PartitionKey
    lane: LaneKey
    session: int


@dataclass(slots=True)
class State:
    """All tables of the core. Plain data: it can be pickled and compared by digest."""

    config: CoreConfig
    queue: WaitingQueue
    peer_clock: PeerClock
    epoch: int = 0
    restored: bool = False
    listening: bool = False
    now_ns: int = 0
    peer_ns: int = 0
    timers: Timers = field(default_factory=Timers)
    peer_timers: Timers = field(default_factory=Timers)
    catalogue_revision: bytes = b""
    catalogue: dict[str, CircuitInfo] = field(default_factory=dict)

    jobs: dict[str, Job] = field(default_factory=dict)
    identity: dict[tuple[str, bytes], str] = field(default_factory=dict)
    retries: dict[str, str] = field(default_factory=dict)
    """job_id -> the newest job that is its retry."""
    job_order: list[int] = field(default_factory=list)
    """Rising job_seq of every job in the table."""
    job_by_seq: dict[int, Job] = field(default_factory=dict)
    next_job_seq: int = 1
    open_jobs: int = 0
    """Jobs that are PENDING, OPEN or ENDING."""
    open_partitions: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    """Result bytes of ENDED jobs by job_id, oldest first."""
    kept_bytes: int = 0

    backing_off: dict[tuple[str, int], Partition] = field(default_factory=dict)
    """(job_id, index) -> a partition with a back-off (`backoff`)."""
    leases: dict[str, Lease] = field(default_factory=dict)
    next_lease: int = 1
    checks: dict[int, Check] = field(default_factory=dict)
    checks_by_part: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """(job_id, index, prover_id) -> the one check in flight."""
    next_check: int = 1
    crash_index: dict[tuple[str, str], dict[tuple[str, int], None]] = field(default_factory=dict)
    """(prover_id, instance_id) -> open partitions with a crash mark of it."""

    sessions: dict[int, Session] = field(default_factory=dict)
    provers: dict[str, Prover] = field(default_factory=dict)
    pins: dict[tuple[bytes, str], bool] = field(default_factory=dict)
    """(manifest, prover_id) -> pinned; an empty prover_id stands for all others."""
    offering: dict[bytes, dict[int, None]] = field(default_factory=dict)
    """manifest -> sessions that offer it."""
    open_sessions: dict[int, None] = field(default_factory=dict)
    """Sessions that accept work and have an open slot, express ones included."""
    open_normal: dict[int, None] = field(default_factory=dict)
    """Those with an open slot that is not express."""
    closing: dict[int, str] = field(default_factory=dict)
    """CloseSession effects that wait for SessionClosed."""

    next_record: int = 1
    durable_record: int = 0
    after: deque[tuple[int, After, str, int]] = field(default_factory=deque)
    last_mark_ns: int = 0

    effects: list[Effect] = field(default_factory=list)
    dirty_sessions: dict[int, None] = field(default_factory=dict)
    dirty_jobs: dict[str, None] = field(default_factory=dict)
    want_dispatch: bool = False
    grants: list[Grant] = field(default_factory=list)

    def begin(self, now_ns: int) -> None:
        """Start a turn. Time never runs backwards here."""
        self.now_ns = max(now_ns, self.now_ns)
        self.peer_ns = self.peer_clock.turn(self.now_ns)
        self.effects = []
        self.grants = []

    def finish(self) -> list[Effect]:
        """End a turn: coalesce what changed and hand over the effects."""
        for number in self.dirty_sessions:
            session = self.sessions.get(number)
            if session is not None and session.synced:
                self.effects.append(SyncProver(number))
        self.dirty_sessions = {}
        self.effects.extend(JobChanged(job_id) for job_id in self.dirty_jobs)
        self.dirty_jobs = {}
        effects, self.effects = self.effects, []
        return effects

    def persist(self, record: Record) -> int:
        """Emit a record, a clock mark before it where one is due; return its number."""
        if self.now_ns - self.last_mark_ns >= self.config.clock_mark_ns:
            self.last_mark_ns = self.now_ns
            self._emit(ClockMark(self.now_ns))
        return self._emit(record)

    def _emit(self, record: Record) -> int:
        n = self.next_record
        self.next_record += 1
        self.effects.append(Persist(n, record))
        return n

    def when_durable(self, n: int, what: After, name: str, number: int = 0) -> None:
        """Let `what` happen once record `n`, and what was asked for before, is durable."""
        self.after.append((n, what, name, number))

    def touch(self, session: Session) -> int:
        """Note that `desired(session)` changed; return the revision that shows it."""
        if session.number not in self.dirty_sessions:
            self.dirty_sessions[session.number] = None
            session.revision += 1
            if session.awaited_revision == 0 and session.synced:
                self.await_revision(session)
        return session.revision

    def await_revision(self, session: Session) -> None:
        """Give the prover a time to take in the newest Desired."""
        session.awaited_revision = session.revision
        self.peer_timers.arm(
            ("stuck", "", session.number), self.peer_ns + self.config.stuck_applied_ns
        )

    def changed(self, job: Job) -> None:
        """Note that the view of a job changed."""
        self.dirty_jobs[job.job_id] = None

    def save_job(self, job: Job) -> int:
        """Persist a job's row as it is, or as it will be once this is durable."""
        return self.persist(job_record(job))

    def save_partition(self, part: Partition) -> int:
        """Persist a partition's row."""
        return self.persist(partition_record(part))

    def save_prover(self, prover: Prover) -> int:
        """Persist a prover's row."""
        return self.persist(
            ProverRecord(
                prover.prover_id,
                prover.mode,
                prover.trust,
                prover.reason,
                prover.debits,
                prover.proved,
                prover.failed,
                prover.trust_reason,
                prover.quarantined_until_ns,
            )
        )

    def prover(self, prover_id: str) -> Prover:
        """Return the prover's row, a new one if it was never seen."""
        prover = self.provers.get(prover_id)
        if prover is None:
            prover = self.provers[prover_id] = Prover(prover_id)
        return prover

    def session_of(self, lease: Lease) -> Session | None:
        """Return the session that holds a lease."""
        return None if lease.session is None else self.sessions[lease.session]


def job_record(job: Job) -> JobRecord:
    """Return the row of a job: ENDED as soon as its outcome is fixed, else OPEN."""
    return JobRecord(
        job_id=job.job_id,
        job_seq=job.job_seq,
        request_id=job.request_id,
        digest=job.digest,
        circuit_id=job.circuit_id,
        manifest_sha256=job.manifest_sha256,
        input_format=job.input_format,
        priority=job.priority,
        state=JobState.OPEN if job.outcome is None else JobState.ENDED,
        outcome=job.outcome,
        failure=job.failure,
        deadline_ns=job.deadline_ns,
        retain_ns=job.retain_ns,
        abandon_after_ns=job.abandon_after_ns,
        created_ns=job.created_ns,
        started_ns=job.started_ns,
        ended_ns=job.ended_ns,
        labels=job.labels,
        retry_of=job.retry_of,
    )


def partition_record(part: Partition) -> PartitionRecord:
    """Return the row of a partition; that it is leased is told by its lease's row."""
    leased = part.state is PartitionState.LEASED
    return PartitionRecord(
        job_id=part.job.job_id,
        index=part.index,
        state=PartitionState.WAITING if leased else part.state,
        attempt=part.attempt,
        failures=part.failures,
        crashes=part.crashes,
        taken=part.taken,
        proof=part.proof,
        statement=part.statement,
        statement_source=part.statement_source,
        prover_id=part.prover_id,
        proved_ns=part.proved_ns,
        timings=part.timings,
    )
