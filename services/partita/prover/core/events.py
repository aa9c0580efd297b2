"""What can happen to the prover's core; each is handled by `PipelineCore.handle`.

Every stage that an effect started is answered by exactly one ending event: InputFetched,
Synthesized, Proved, StageFailed or StageStopped. A stage's scratch memory is unmapped before its
ending event; what the lease keeps (input, witness) goes at FreeLease, answered by LeaseFreed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.prover.core.model import Bytes, Desired, Failure


@dataclass(frozen=True, slots=True)
class OffersChanged:
    """What this prover can prove: the memory of each key by manifest digest."""

    key_bytes: Mapping[bytes, Bytes]


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A new session with a scheduler begins; its revisions count from 1."""


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The session ended."""


@dataclass(frozen=True, slots=True)
class DesiredReceived:
    """The newest Desired of the session."""

    desired: Desired


@dataclass(frozen=True, slots=True)
class InputFetched:
    """The input is here and its digest is right."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class Synthesized:
    """The witness is here. `statement` are its public inputs, `statement_sha256` their digest."""

    lease_id: str
    statement: bytes
    statement_sha256: bytes


@dataclass(frozen=True, slots=True)
class Released:
    """The evaluation vectors are unmapped; `held` is the most the lease may still occupy."""

    lease_id: str
    held: Bytes


@dataclass(frozen=True, slots=True)
class DeviceDone:
    """The lease needs the device no more; its host part goes on."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far a stage is, 0 to 1000; shown only."""

    lease_id: str
    permille: int


@dataclass(frozen=True, slots=True)
class Proved:
    """The proof is here; `peak` is the most memory the lease occupied, measured."""

    lease_id: str
    proof: bytes
    peak: Bytes


@dataclass(frozen=True, slots=True)
class StageFailed:
    """The stage ended without a result."""

    lease_id: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class StageStopped:
    """The stage ended because StopStage asked for it."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class LeaseFreed:
    """Everything of the lease is unmapped."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class KeyLoaded:
    """The key is resident; `held` is what it occupies, never more than its offer."""

    manifest_sha256: bytes
    held: Bytes


@dataclass(frozen=True, slots=True)
class KeyFailed:
    """The key cannot be loaded; nothing of it is left in memory."""

    manifest_sha256: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class KeyUnloaded:
    """Everything of the key is unmapped."""

    manifest_sha256: bytes


@dataclass(frozen=True, slots=True)
class Faulted:
    """The device cannot be trusted any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The process shall end: finish or hand back within the grace."""

    reason: str = "the prover was told to stop"


Event = (
    OffersChanged
    | LinkUp
    | LinkDown
    | DesiredReceived
    | InputFetched
    | Synthesized
    | Released
    | DeviceDone
    | Progressed
    | Proved
    | StageFailed
    | StageStopped
    | LeaseFreed
    | KeyLoaded
    | KeyFailed
    | KeyUnloaded
    | Faulted
    | Stopping
)
