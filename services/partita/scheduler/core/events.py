"""What can happen to the scheduler's core; each is handled by `SchedulerCore.handle`.

Ids and everything random arrive in events. `caller` and `waiter` are opaque numbers that the
engine chooses: one per open SubmitJob call, one per open GetJob(wait) or WatchJob. `session`
numbers rise and are never reused; an event of a closed session does nothing.

Order at boot: `Restored`, `CatalogueChanged`, then `ListenerOpened` once peers can connect.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.scheduler.core.model import (
    Actual,
    CircuitInfo,
    Hello,
    Mode,
    PartitionSpec,
    Priority,
    Residency,
    Trust,
    Verdict,
)
from partita.scheduler.core.records import (
    JobAccepted,
    LeaseRecord,
    PartitionRecord,
    PinRecord,
    ProverRecord,
)


@dataclass(frozen=True, slots=True)
class Restored:
    """The first event, once: what the store holds. A new store gives only the epoch."""

    epoch: int
    clock_mark_ns: int = 0
    jobs: tuple[JobAccepted, ...] = ()
    partitions: tuple[PartitionRecord, ...] = ()
    leases: tuple[LeaseRecord, ...] = ()
    provers: tuple[ProverRecord, ...] = ()
    pins: tuple[PinRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ListenerOpened:
    """Provers and clients can connect from now on: graces of remembered leases start."""


@dataclass(frozen=True, slots=True)
class CatalogueChanged:
    """The whole catalogue; `revision` is SHA-256 over (circuit_id, manifest digest) sorted."""

    revision: bytes
    circuits: tuple[CircuitInfo, ...]


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """A submission whose blobs exist and whose shape the API has checked.

    `job_id` becomes the job's if a new one is made. `digest` is the identity's second half:
    SHA-256 over manifest digest, input format, input digests and statements as submitted.
    """

    job_id: str
    request_id: str
    digest: bytes
    circuit_id: str
    input_format: str
    partitions: tuple[PartitionSpec, ...]
    caller: int
    priority: Priority = Priority.NORMAL
    deadline_ns: int | None = None
    retain_ns: int | None = None
    abandon_after_ns: int | None = None
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class JobRetried:
    """Submit a FAILED or CANCELLED job again; its inputs that are still needed exist.

    `job_id` becomes the new job's; `caller` as in `JobSubmitted`.
    """

    job_id: str
    retry_of: str
    caller: int


@dataclass(frozen=True, slots=True)
class WaiterJoined:
    """Somebody waits for the end of a job."""

    job_id: str
    waiter: int


@dataclass(frozen=True, slots=True)
class WaiterLeft:
    """That waiter has gone (or was answered)."""

    job_id: str
    waiter: int


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody cancels a job; a terminal or unknown job does not change."""

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A prover's stream said Hello; contract and identity were checked by the shell."""

    session: int
    hello: Hello


@dataclass(frozen=True, slots=True)
class OffersChanged:
    """A later Hello on the same stream."""

    session: int
    hello: Hello


@dataclass(frozen=True, slots=True)
class SessionReported:
    """An Actual. The first one of a session is its opening balance.

    `missing` are the digests, among inputs of leases in it that failed with INPUT_LOST, which
    the scheduler's own blob store lacks.
    """

    session: int
    actual: Actual
    missing: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The stream ended. `clean`: half-closed by the prover with no lease held."""

    session: int
    clean: bool = False


@dataclass(frozen=True, slots=True)
class ModeSet:
    """An operator's wish for a prover, known or not."""

    prover_id: str
    mode: Mode
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TrustSet:
    """An operator's judgement of a prover."""

    prover_id: str
    trust: Trust
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResidencySet:
    """An operator's wish for a key on one prover, or on all: `prover_id` is empty."""

    manifest_sha256: bytes
    prover_id: str
    residency: Residency


@dataclass(frozen=True, slots=True)
class ProofChecked:
    """The answer to VerifyProof."""

    check_id: int
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Persisted:
    """All records up to number `n` are durable."""

    n: int


Event = (
    Restored
    | ListenerOpened
    | CatalogueChanged
    | JobSubmitted
    | JobRetried
    | WaiterJoined
    | WaiterLeft
    | CancelRequested
    | SessionOpened
    | OffersChanged
    | SessionReported
    | SessionClosed
    | ModeSet
    | TrustSet
    | ResidencySet
    | ProofChecked
    | Persisted
)
