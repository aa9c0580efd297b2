"""What the core asks of the engine; the engine does it and decides nothing.

effect         answered by
Persist        Persisted(n), in order
VerifyProof    ProofChecked(check_id)
SyncProver     SessionReported with applied >= the revision then sent, or STUCK after a delay
CloseSession   SessionClosed(session)
the others     nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.scheduler.core.records import Record


@dataclass(frozen=True, slots=True)
class Persist:
    """Make a record durable; numbers rise by one."""

    n: int
    record: Record


@dataclass(frozen=True, slots=True)
class VerifyProof:
    """Check these bytes against this statement with the catalogue's verifying key."""

    check_id: int
    circuit_id: str
    manifest_sha256: bytes
    statement: bytes
    proof: bytes


@dataclass(frozen=True, slots=True)
class SyncProver:
    """Send `desired(session)`, coalesced: at most one send per loop turn."""

    session: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the stream with that reason (STUCK, SUPERSEDED, PROVER_ID_IN_USE, STALE_EPOCH)."""

    session: int
    reason: str


@dataclass(frozen=True, slots=True)
class Accept:
    """Answer a SubmitJob or RetryJob call: the job is durable."""

    caller: int
    job_id: str
    attached: bool


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer such a call: nothing was kept. `reason` is one of `errors.REFUSALS`."""

    caller: int
    reason: str
    detail: str
    retry_after_ns: int | None


@dataclass(frozen=True, slots=True)
class AnswerWaiter:
    """The job of that waiter is terminal and durable."""

    waiter: int
    job_id: str


@dataclass(frozen=True, slots=True)
class JobChanged:
    """What `status(job_id)` says has changed; once per turn and job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class DropInputs:
    """The job no longer needs its inputs; a blob goes when nothing else names it."""

    job_id: str


Effect = (
    Persist
    | VerifyProof
    | SyncProver
    | CloseSession
    | Accept
    | Refuse
    | AnswerWaiter
    | JobChanged
    | DropInputs
)
