"""The scheduler's state machine: events and time in, effects out.

`SchedulerCore` only orchestrates: each event goes to the module that owns its noun, then the
dispatcher runs if anything changed that could let a partition start, then the turn's effects
are handed over. It does no I/O, reads no clock, and is not thread-safe: the one task that owns
it is its only caller. The same events at the same times give the same effects and the same
state (`digest`).

Contract with the caller: `now_ns` never falls; arrived events are handled before `tick`;
`tick` is called by `next_deadline_ns()` at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.scheduler.core import (
    acceptance,
    assembler,
    backoff,
    census,
    dispatch,
    failures,
    fleet,
    invariants,
    jobs,
    leases,
    reading,
    residency,
    restore,
    retry,
    snapshot,
    trust,
)
from partita.scheduler.core import events as ev
from partita.scheduler.core.config import CoreConfig
from partita.scheduler.core.effects import Accept, Effect
from partita.scheduler.core.errors import CoreBug, SessionUnknown
from partita.scheduler.core.model import (
    BlobRef,
    Bytes,
    Desired,
    Failure,
    FailureKind,
    JobState,
    Outcome,
    Residency,
)
from partita.scheduler.core.queue import WaitingQueue
from partita.scheduler.core.state import After, State
from partita.scheduler.core.tables import Session
from partita.scheduler.core.timers import PeerClock, TimerName
from partita.scheduler.core.views import FleetView, JobView, PartitionView, PublicState


class SchedulerCore:
    """All decisions of the scheduler.

    Raises, from any method, `CoreBug` if an invariant is found broken: the caller must stop
    and start again from the store.
    """

    def __init__(self, config: CoreConfig | None = None, *, state: State | None = None) -> None:
        config = config or CoreConfig()
        self._state = state or State(
            config=config,
            queue=WaitingQueue(config.alone_after_crashes),
            peer_clock=PeerClock(config.beat_ns),
        )

    # --- driving -------------------------------------------------------------------------

    def handle(self, event: ev.Event, now_ns: int) -> list[Effect]:
        """Take one event; return what is to be done, in order."""
        state = self._state
        state.begin(now_ns)
        if not state.restored and not isinstance(event, ev.Restored):
            raise CoreBug(f"{type(event).__name__} before Restored")
        _HANDLERS[type(event)](state, event)
        return self._finish()

    def tick(self, now_ns: int) -> list[Effect]:
        """Let every deadline up to `now_ns` fall due."""
        state = self._state
        state.begin(now_ns)
        while (name := state.timers.pop_due(state.now_ns)) is not None:
            _TIMERS[name[0]](state, name)
        while (name := state.peer_timers.pop_due(state.peer_ns)) is not None:
            _TIMERS[name[0]](state, name)
        return self._finish()

    def _finish(self) -> list[Effect]:
        state = self._state
        if state.want_dispatch:
            dispatch.dispatch(state)
        return state.finish()

    def next_deadline_ns(self) -> int | None:
        """Return when `tick` must be called at the latest; None: not before another event.

        While a peer deadline is armed that is within a beat, so that a stall of this service
        is told from the silence of its peers.
        """
        state = self._state
        due = state.timers.next_ns()
        peer = state.peer_timers.next_ns()
        if peer is not None:
            clock = state.peer_clock
            peer = min(peer + clock.stalled_ns, clock.last_ns + clock.beat_ns)
            peer = max(peer, clock.last_ns)
        if due is None or peer is None:
            return peer if due is None else due
        return min(due, peer)

    # --- reading -------------------------------------------------------------------------

    @property
    def unsaved_records(self) -> int:
        """Records emitted and not yet durable."""
        return self._state.next_record - 1 - self._state.durable_record

    def desired(self, session: int) -> Desired:
        """Return what the prover of an open session should hold: a function of the tables.

        Raises:
            SessionUnknown: the session has closed since its SyncProver.
        """
        found = self._state.sessions.get(session)
        if found is None:
            raise SessionUnknown(session)
        return reading.desired(self._state, found)

    def status(self, job_id: str) -> JobView:
        """Return one job.

        Raises:
            JobUnknown: no such job, or its retention is over.
        """
        return reading.job_view(self._state, reading.find(self._state, job_id))

    def must_know(self, job_id: str) -> None:
        """Raise `JobUnknown` where `status` would, at less cost."""
        reading.find(self._state, job_id)

    def jobs(
        self,
        *,
        after_seq: int = 0,
        limit: int = 100,
        states: frozenset[PublicState] = frozenset(),
        circuit_id: str = "",
        request_id: str = "",
    ) -> list[JobView]:
        """Return up to `limit` durable jobs with job_seq > `after_seq`, in that order.

        The last job_seq is the token of the next page: it is stable while jobs end.
        """
        return reading.job_page(
            self._state, after_seq, limit, states, circuit_id=circuit_id, request_id=request_id
        )

    def partitions(
        self, job_id: str, *, after_index: int = -1, limit: int = 1_024
    ) -> list[PartitionView]:
        """Return up to `limit` partitions of a job with index > `after_index`.

        Raises:
            JobUnknown: no such job, or its retention is over.
        """
        job = reading.find(self._state, job_id)
        chosen = job.partitions[after_index + 1 : after_index + 1 + limit]
        return reading.partition_views(self._state, chosen)

    def inputs_to_retry(self, job_id: str) -> list[tuple[BlobRef, bytes | None]]:
        """Return the inputs, with their bytes where a row holds them, that a retry still needs.

        Raises:
            JobUnknown: no such job, or its retention is over.
        """
        return retry.inputs(self._state, reading.find(self._state, job_id))

    def residency_change(self, manifest_sha256: bytes, prover_id: str, wish: Residency) -> Bytes:
        """Return the memory that such a `ResidencySet` would pin, unpin or give up now."""
        return residency.change(self._state, manifest_sha256, prover_id, wish)

    def fleet(self) -> FleetView:
        """Return every prover with what it holds and should hold, and every lane."""
        return reading.fleet_view(self._state)

    def census(self) -> census.Census:
        """Return the tables counted: for metrics, cheap enough for every scrape."""
        return census.take(self._state)

    # --- proving itself right --------------------------------------------------------------

    def check(self) -> None:
        """Raise `CoreBug` if an invariant does not hold. Cost: everything, once."""
        invariants.check(self._state)

    def digest(self) -> bytes:
        """Return SHA-256 over the canonical form of the tables."""
        return snapshot.digest(self._state)

    def snapshot(self) -> bytes:
        """Return the whole state as bytes for `restore`; only for this version of the code."""
        return snapshot.dump(self._state)

    @classmethod
    def restore(cls, data: bytes) -> SchedulerCore:
        """Return a core in exactly the state of a snapshot.

        Raises:
            SnapshotRejected: the bytes are not a snapshot of this version of the core.
        """
        return cls(state=snapshot.load(data))


def _catalogue_changed(state: State, event: ev.CatalogueChanged) -> None:
    if event.revision == state.catalogue_revision:
        return
    state.catalogue_revision = event.revision
    state.catalogue = {circuit.circuit_id: circuit for circuit in event.circuits}
    for session in state.sessions.values():
        state.touch(session)


def _cancel(state: State, event: ev.CancelRequested) -> None:
    job = state.jobs.get(event.job_id)
    if job is not None:
        jobs.cancel(state, job, event.by)


def _offers_changed(state: State, event: ev.OffersChanged) -> None:
    if event.session in state.sessions:
        fleet.offers_changed(state, state.sessions[event.session], event.hello)


def _reported(state: State, event: ev.SessionReported) -> None:
    if event.session in state.sessions:
        fleet.reported(state, state.sessions[event.session], event.actual, event.missing)


def _closed(state: State, event: ev.SessionClosed) -> None:
    state.closing.pop(event.session, None)
    if event.session in state.sessions:
        fleet.closed(state, state.sessions[event.session], clean=event.clean)


def _mode_set(state: State, event: ev.ModeSet) -> None:
    prover = state.prover(event.prover_id)
    prover.mode, prover.reason = event.mode, event.reason
    state.save_prover(prover)
    if prover.session is not None:
        session = state.sessions[prover.session]
        state.touch(session)
        acceptance.note_slots(state, session)
    state.want_dispatch = True


def _persisted(state: State, event: ev.Persisted) -> None:
    state.durable_record = max(state.durable_record, min(event.n, state.next_record - 1))
    while state.after and state.after[0][0] <= state.durable_record:
        _, what, name, number = state.after.popleft()
        if what is After.SETTLE:
            assembler.settled(state, name)
        elif what is After.ATTACH:
            state.effects.append(Accept(number, name, attached=True))
        elif what is After.ACCEPT:
            jobs.accepted(state, state.jobs[name])
        else:
            jobs.ended(state, state.jobs[name])


_HANDLERS: dict[type, Callable[[State, Any], None]] = {
    ev.Restored: restore.restore,
    ev.ListenerOpened: lambda state, _: restore.listening(state),
    ev.CatalogueChanged: _catalogue_changed,
    ev.JobSubmitted: jobs.submit,
    ev.JobRetried: retry.retry,
    ev.WaiterJoined: lambda state, e: jobs.join(state, e.job_id, e.waiter),
    ev.WaiterLeft: lambda state, e: jobs.leave(state, e.job_id, e.waiter),
    ev.CancelRequested: _cancel,
    ev.SessionOpened: lambda state, e: fleet.opened(state, e.session, e.hello),
    ev.OffersChanged: _offers_changed,
    ev.SessionReported: _reported,
    ev.SessionClosed: _closed,
    ev.ModeSet: _mode_set,
    ev.TrustSet: lambda state, e: trust.set_by_operator(
        state, state.prover(e.prover_id), e.trust, e.reason
    ),
    ev.ResidencySet: lambda state, e: residency.set_residency(
        state, e.manifest_sha256, e.prover_id, e.residency
    ),
    ev.ProofChecked: lambda state, e: assembler.verdict(state, e.check_id, e.verdict, e.detail),
    ev.Persisted: _persisted,
}


def _deadline(state: State, name: TimerName) -> None:
    job = state.jobs[name[1]]
    if job.outcome is None:
        why = Failure(
            FailureKind.TIMED_OUT,
            "DEADLINE_EXCEEDED",
            f"{job.n_proved} of {len(job.partitions)} partitions were proved by its deadline",
            "",
            0,
            state.now_ns,
        )
        jobs.end(state, job, Outcome.FAILED, why)


def _abandon(state: State, name: TimerName) -> None:
    job = state.jobs[name[1]]
    if job.state is JobState.OPEN and not job.waiters:
        why = Failure(
            FailureKind.INTERNAL, "ABANDONED", "nobody waits for it any more", "", 0, state.now_ns
        )
        jobs.end(state, job, Outcome.CANCELLED, why)


def _backoff(state: State, name: TimerName) -> None:
    backoff.over(state, state.jobs[name[1]].partitions[name[2]])


def _with_session(rule: Callable[[State, Session], None]) -> Callable[[State, TimerName], None]:
    return lambda state, name: rule(state, state.sessions[name[2]])


_TIMERS: dict[str, Callable[[State, TimerName], None]] = {
    "deadline": _deadline,
    "abandon": _abandon,
    "backoff": _backoff,
    "look": lambda state, name: backoff.look(state),  # noqa: ARG005
    "quarantine": lambda state, name: trust.end_quarantine(state, state.provers[name[1]]),
    "forget": lambda state, name: jobs.forget(state, state.jobs[name[1]]),
    "inputs": lambda state, name: jobs.drop_inputs(state, state.jobs[name[1]]),
    "recheck": lambda state, name: assembler.send_again(state, name[2]),
    "lease": lambda state, name: failures.timed_out(state, state.leases[name[1]]),
    "grace": lambda state, name: failures.lease_lost(state, state.leases[name[1]]),
    "leaving": lambda state, name: leases.mark_stuck(state, state.leases[name[1]]),
    "silent": _with_session(fleet.silent),
    "stuck": _with_session(fleet.stuck),
}
