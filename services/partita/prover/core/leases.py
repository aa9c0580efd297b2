"""One held lease: where it is, what it occupies, how it ended.

`phase` is the pipeline's place; what an Actual shows is `shown()`: STOPPING while memory of a
failed or unwanted lease is being given up, FINISHED once only the outcome is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from partita.prover.core.model import (
    NOTHING,
    Bytes,
    Failure,
    HeldLease,
    LeaseOrder,
    Phase,
    Proof,
    Timings,
)


class Stage(Enum):
    """Work that the shell does for a lease."""

    FETCH = auto()
    SYNTHESIS = auto()
    DEVICE = auto()


@dataclass(slots=True)
class Marks:
    """When the lease passed each point; 0 = not yet."""

    accepted_ns: int
    fetched_ns: int = 0
    ready_ns: int = 0
    synthesis_ns: int = 0
    synthesized_ns: int = 0
    proving_ns: int = 0

    def timings(self, now_ns: int) -> Timings:
        """Return the durations of a lease that is proved now."""
        return Timings(
            fetch_ns=self.fetched_ns - self.accepted_ns,
            key_load_ns=self.ready_ns - self.fetched_ns,
            synthesis_ns=self.synthesized_ns - self.synthesis_ns,
            device_ns=now_ns - self.proving_ns,
            total_ns=now_ns - self.accepted_ns,
        )


@dataclass(slots=True)
class Lease:
    """A held lease.

    Attributes:
        order: the newest order; its inline input is dropped once the fetch has started.
        stage: the stage whose ending event is outstanding.
        express: whether the running synthesis has the thread for CRITICAL work.
        on_device: whether it holds the device section.
        stop_sent, free_sent: which of these effects is outstanding or done.
        doomed: not desired any more and without an outcome: forgotten once freed.
        freed: nothing of it is mapped.
        ended_ns: when its outcome was fixed.
    """

    order: LeaseOrder
    marks: Marks
    phase: Phase = Phase.FETCHING
    held: Bytes = NOTHING
    stage: Stage | None = None
    express: bool = False
    on_device: bool = False
    input_here: bool = False
    stop_sent: bool = False
    free_sent: bool = False
    doomed: bool = False
    freed: bool = False
    permille: int = 0
    statement: bytes = b""
    outcome: Proof | Failure | None = None
    ended_ns: int = field(default=0)

    @property
    def going_on(self) -> bool:
        """Whether it still works towards an outcome."""
        return self.outcome is None and not self.doomed

    def shown(self) -> Phase:
        """Return the phase that an Actual lists."""
        if self.going_on:
            return self.phase
        if self.freed:
            return Phase.FINISHED
        return Phase.FINISHING if isinstance(self.outcome, Proof) else Phase.STOPPING

    def view(self) -> HeldLease:
        """Return the lease as an Actual lists it."""
        return HeldLease(
            lease_id=self.order.lease_id,
            job_id=self.order.job_id,
            partition_index=self.order.partition_index,
            attempt=self.order.attempt,
            phase=self.shown(),
            held=self.held,
            permille=self.permille if self.going_on else 0,
            outcome=self.outcome,
        )
