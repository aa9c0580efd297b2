"""What the prover's core asks of its shell.

| effect | answered by |
|---|---|
| FetchInput | InputFetched, StageFailed, StageStopped |
| Synthesize | Synthesized, StageFailed, StageStopped |
| Prove | Released and DeviceDone on the way; Proved, StageFailed, StageStopped |
| StopStage | the running stage's own ending event, whichever comes |
| FreeLease | LeaseFreed |
| LoadKey | KeyLoaded, KeyFailed |
| UnloadKey | KeyUnloaded |
| SendActual, Exit | nothing |
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.prover.core.model import Bytes, LeaseOrder


@dataclass(frozen=True, slots=True)
class FetchInput:
    """Bring the input here: `order.inline` if it is there, otherwise by download."""

    order: LeaseOrder


@dataclass(frozen=True, slots=True)
class Synthesize:
    """Make the witness on a synthesis thread; `express` names the one for CRITICAL work."""

    order: LeaseOrder
    express: bool


@dataclass(frozen=True, slots=True)
class Prove:
    """Prove on the device thread."""

    order: LeaseOrder


@dataclass(frozen=True, slots=True)
class StopStage:
    """End the running stage of a lease as soon as it can."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class FreeLease:
    """Unmap everything of a lease that runs no stage."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class LoadKey:
    """Load a proving key into at most `limit`."""

    manifest_sha256: bytes
    limit: Bytes


@dataclass(frozen=True, slots=True)
class UnloadKey:
    """Unmap a proving key that no lease refers to."""

    manifest_sha256: bytes


@dataclass(frozen=True, slots=True)
class SendActual:
    """The view changed. `urgent`: an outcome, a phase or the condition did, send at once."""

    urgent: bool


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process with this code, after the newest Actual had a chance to leave."""

    code: int


Effect = (
    FetchInput
    | Synthesize
    | Prove
    | StopStage
    | FreeLease
    | LoadKey
    | UnloadKey
    | SendActual
    | Exit
)
