"""The core counted: what metrics show of the tables at one moment.

One pass over jobs, leases and provers, none over partitions. No id of a job or lease is in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from partita.scheduler.core import acceptance
from partita.scheduler.core.model import NOTHING, Bytes, JobState, Mode, PartitionState, Trust
from partita.scheduler.core.reading import public_state
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import KeyState, Lease, LeaseState
from partita.scheduler.core.views import PublicState


@dataclass(frozen=True, slots=True)
class ProverCensus:
    """One prover that is connected or remembered."""

    prover_id: str
    connected: bool
    accepting: bool
    mode: Mode
    trust: Trust
    total: Bytes
    charged: Bytes
    keys_ready: int
    debits: int


@dataclass(frozen=True, slots=True)
class Census:
    """What the core holds, in numbers."""

    jobs: dict[tuple[PublicState, str], int]
    """(state, priority's name) -> jobs in the table."""
    waiting: dict[str, int]
    """circuit_id -> partitions that nobody holds, those in back-off included."""
    leased: dict[str, int]
    """circuit_id -> partitions that a lease has the right to."""
    leases: dict[str, int]
    """Place of a lease -> leases that are not gone."""
    head_queued_ns: int | None
    """When the first waiting partition was queued; None: nothing waits."""
    provers: tuple[ProverCensus, ...]
    unsaved_records: int


def take(state: State) -> Census:
    """Count the tables."""
    jobs: Counter[tuple[PublicState, str]] = Counter()
    unproved: Counter[str] = Counter()
    for job in state.jobs.values():
        if job.state is JobState.PENDING:
            continue
        jobs[public_state(job), job.priority.name] += 1
        if job.state is JobState.OPEN:
            unproved[job.circuit_id] += len(job.partitions) - job.n_proved
    leased: Counter[str] = Counter()
    leases: Counter[str] = Counter()
    for lease in state.leases.values():
        leases[_place(lease)] += 1
        part = lease.part
        if part is not None and lease.has_right and part.state is PartitionState.LEASED:
            leased[part.job.circuit_id] += 1
    head = next(iter(state.queue.heads()), None)
    return Census(
        jobs=dict(jobs),
        waiting={name: count - leased[name] for name, count in unproved.items()},
        leased=dict(leased),
        leases=dict(leases),
        head_queued_ns=None if head is None else state.queue.lanes[head[1]].head().queued_ns,
        provers=_provers(state),
        unsaved_records=state.next_record - 1 - state.durable_record,
    )


def _place(lease: Lease) -> str:
    return (lease.phase if lease.state is LeaseState.HELD else lease.state).name.lower()


def _provers(state: State) -> tuple[ProverCensus, ...]:
    counted = []
    for prover in state.provers.values():
        session = None if prover.session is None else state.sessions[prover.session]
        ready = 0
        if session is not None:
            ready = sum(key.state is KeyState.READY for key in session.keys.values())
        counted.append(
            ProverCensus(
                prover_id=prover.prover_id,
                connected=session is not None,
                accepting=session is not None and acceptance.accepting(state, session),
                mode=prover.mode,
                trust=prover.trust,
                total=NOTHING if session is None else session.hello.total,
                charged=NOTHING if session is None else session.ledger.charged,
                keys_ready=ready,
                debits=prover.debits,
            )
        )
    return tuple(counted)
