"""Leases: the right to a partition, the charge on a prover, and the end of each.

    GRANTED → HELD → CHECKING → SETTLING → LEAVING → GONE (no row)
    a session closes: GRANTED, HELD → ADRIFT; LEAVING → GONE; CHECKING, SETTLING are detached

The two ends are separate: `end_right` takes the lease out of Desired, `drop` releases its
bytes once the prover does not show it any more. What becomes of the partition is decided by
the callers (`jobs`, `failures`, `assembler`, `fleet`).

A lease's clock is the sum of its time in native phases, in peer time, kept across sessions.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance, keys
from partita.scheduler.core.model import (
    NATIVE_PHASES,
    NOTHING,
    Bytes,
    CircuitOffer,
    HeldLease,
    PartitionState,
    Phase,
    Priority,
)
from partita.scheduler.core.records import LeaseEnded, LeaseRecord
from partita.scheduler.core.state import After, Grant, State
from partita.scheduler.core.tables import Lease, LeaseState, Partition, Session

_MAX_DOUBLINGS = 10


def timeouts(state: State, offer: CircuitOffer | None, attempt: int) -> tuple[int, int]:
    """Return (clock limit, FETCHING limit) of a lease in nanoseconds."""
    config = state.config
    expected_ns = offer.expected_ns if offer else 0
    load_ns = offer.load_time_ns if offer else 0
    clock_ns = max(config.lease_floor_ns, config.lease_factor * expected_ns)
    fetch_ns = max(config.lease_floor_ns, config.lease_factor * load_ns)
    return clock_ns << min(max(attempt - 1, 0), _MAX_DOUBLINGS), fetch_ns


def grant(state: State, session: Session, part: Partition, *, express: bool, alone: bool) -> Lease:
    """Give a waiting partition to a session: pop, reserve and lease are this one step."""
    job = part.job
    offer = session.offers[job.manifest_sha256]
    lane = part.lane
    if lane is not None:
        state.grants.append(Grant(part.key, lane, session.number))
    state.queue.remove(part)
    part.attempt += 1
    keys.want(state, session, job.manifest_sha256)
    timeout_ns, fetch_ns = timeouts(state, offer, part.attempt)
    lease = Lease(
        lease_id=f"{state.epoch}.{state.next_lease}",
        part=part,
        attempt=part.attempt,
        prover_id=session.prover_id,
        instance_id=session.hello.instance_id,
        session=session.number,
        state=LeaseState.GRANTED,
        reserved=acceptance.peak_of(state, session, offer),
        timeout_ns=timeout_ns,
        fetch_timeout_ns=fetch_ns,
        grant_revision=state.touch(session),
        granted_ns=state.now_ns,
        express=express,
        alone=alone,
        diagnose=part.diagnose,
    )
    state.next_lease += 1
    give_right(state, lease, part)
    attach(state, session, lease, lease.reserved)
    if job.started_ns is None:
        job.started_ns = state.now_ns
    state.persist(
        LeaseRecord(
            lease.lease_id,
            job.job_id,
            part.index,
            lease.attempt,
            lease.prover_id,
            lease.instance_id,
            lease.reserved,
        )
    )
    state.changed(job)
    return lease


def give_right(state: State, lease: Lease, part: Partition) -> None:
    """Make `lease` the one with the right; the partition must be WAITING without one."""
    state.queue.remove(part)
    part.backing_off = False
    unbind(state, part)
    part.lease = lease
    part.state = PartitionState.LEASED
    state.leases[lease.lease_id] = lease


def unbind(state: State, part: Partition) -> None:
    """Nobody prepares for that partition any more."""
    if part.preparing is not None:
        session = state.sessions.get(part.preparing)
        if session is not None and session.preparing is part:
            session.preparing = None
        part.preparing = None


def attach(state: State, session: Session, lease: Lease, charge: Bytes) -> None:
    """Enter a lease into a session's tables: charge, slot, key reference."""
    state.leases[lease.lease_id] = lease
    lease.session = session.number
    session.leases[lease.lease_id] = lease
    session.ledger.charge(lease.lease_id, charge)
    if lease.part is not None:
        keys.refer(session, lease.part.job.manifest_sha256, +1)
    lease.slot = True
    if lease.express:
        session.used_express += 1
    else:
        session.used_slots += 1
    if lease.alone:
        session.alone = lease
    acceptance.note_slots(state, session)


def show_outcome(state: State, lease: Lease) -> None:
    """Free the slot of a lease that has shown its outcome."""
    if lease.phase_since_ns >= 0:
        stop_clock(state, lease)
    session = state.session_of(lease) if lease.slot else None
    if session is None:
        return
    lease.slot = False
    if lease.express:
        session.used_express -= 1
    else:
        session.used_slots -= 1
    acceptance.note_slots(state, session)


def detach(state: State, lease: Lease) -> None:
    """Take a lease out of its session: charge, slot and reference end."""
    session = state.session_of(lease)
    if session is None:
        return
    show_outcome(state, lease)
    state.peer_timers.disarm(("leaving", lease.lease_id, 0))
    session.stuck = session.stuck - lease.stuck
    lease.stuck = NOTHING
    del session.leases[lease.lease_id]
    session.ledger.release(lease.lease_id)
    if lease.part is not None:
        manifest = lease.part.job.manifest_sha256
        keys.refer(session, manifest, -1)
        if manifest in session.keys:
            session.keys[manifest].used_ns = state.now_ns
    if session.alone is lease:
        session.alone = None
    lease.session = None
    acceptance.note_slots(state, session)
    state.want_dispatch = True


def drop(state: State, lease: Lease) -> None:
    """The lease is GONE: nothing of it is left anywhere."""
    detach(state, lease)
    stop_clock(state, lease)
    state.peer_timers.disarm(("grace", lease.lease_id, 0))
    state.provers[lease.prover_id].detached.pop(lease.lease_id, None)
    if lease.part is not None and lease.part.lease is lease:
        lease.part.lease = None
    del state.leases[lease.lease_id]


def end_right(state: State, lease: Lease) -> None:
    """Take the right from a lease: it leaves Desired, its charge stays until it is gone."""
    part = lease.part
    if part is not None and part.lease is lease:
        part.lease = None
        state.persist(LeaseEnded(lease.lease_id))
    stop_clock(state, lease)
    if lease.state is not LeaseState.LEAVING:
        leave(state, lease)


def leave(state: State, lease: Lease) -> None:
    """Move a lease to LEAVING, or to GONE where it has no session."""
    session = state.session_of(lease)
    if session is None:
        drop(state, lease)
        return
    lease.state = LeaseState.LEAVING
    lease.removal_revision = state.touch(session)
    acceptance.note_slots(state, session)
    state.peer_timers.arm(
        ("leaving", lease.lease_id, 0), state.peer_ns + state.config.leaving_stuck_ns
    )


def settle(state: State, lease: Lease, record: int) -> None:
    """The partition is PROVED: the lease stays in Desired until that is durable."""
    lease.state = LeaseState.SETTLING
    if lease.part is not None and lease.part.lease is lease:
        lease.part.lease = None
    stop_clock(state, lease)
    state.peer_timers.disarm(("grace", lease.lease_id, 0))
    state.persist(LeaseEnded(lease.lease_id))
    state.when_durable(record, After.SETTLE, lease.lease_id)


def mark_stuck(state: State, lease: Lease) -> None:
    """LEAVING for too long: its bytes no longer count as memory that will come back."""
    session = state.session_of(lease)
    if session is not None and lease.state is LeaseState.LEAVING:
        note_charge(session, lease, session.ledger.of(lease.lease_id), stuck=True)


def note_charge(session: Session, lease: Lease, charge: Bytes, *, stuck: bool = False) -> None:
    """Charge a lease what the last Actual shows; keep the stuck sum in step."""
    session.ledger.charge(lease.lease_id, charge)
    if stuck or lease.stuck != NOTHING:
        session.stuck = session.stuck - lease.stuck + charge
        lease.stuck = charge


def show(state: State, session: Session, lease: Lease, held: HeldLease) -> None:
    """Take in what an Actual says of a lease, its outcome aside."""
    lease.shown = held
    lease.listed = True
    if lease.state is LeaseState.GRANTED:
        lease.state = LeaseState.HELD
    if session.ledger.of(lease.lease_id) != held.held:
        note_charge(session, lease, held.held)
        if not held.held.fits(lease.reserved) and lease.part is not None:
            raise_peak(state, lease, held.held)
    if held.phase is not lease.phase:
        run_clock(state, lease, held.phase)
        if lease.has_right and lease.part is not None:
            state.changed(lease.part.job)
    lease.permille = held.permille


def raise_peak(state: State, lease: Lease, measured: Bytes) -> None:
    """A lease needed more than its offer said: later grants there reserve more."""
    if lease.part is None:
        return
    manifest = lease.part.job.manifest_sha256
    peaks = state.provers[lease.prover_id].peaks
    peaks[manifest] = peaks.get(manifest, NOTHING).most(measured)


def run_clock(state: State, lease: Lease, phase: Phase) -> None:
    """Enter a phase: native ones and FETCHING have a deadline, the others wait for others."""
    stop_clock(state, lease)
    lease.phase = phase
    lease.phase_since_ns = state.peer_ns
    if not lease.has_right or lease.state is not LeaseState.HELD:
        return
    name = ("lease", lease.lease_id, 0)
    if phase in NATIVE_PHASES:
        left_ns = max(lease.timeout_ns - lease.clock_used_ns, 0)
        state.peer_timers.arm(name, state.peer_ns + left_ns)
    elif phase is Phase.FETCHING:
        state.peer_timers.arm(name, state.peer_ns + lease.fetch_timeout_ns)


def stop_clock(state: State, lease: Lease) -> None:
    """Add the running native phase to the clock and stop it."""
    if lease.phase in NATIVE_PHASES and lease.phase_since_ns >= 0:
        lease.clock_used_ns += state.peer_ns - lease.phase_since_ns
    lease.phase_since_ns = -1
    state.peer_timers.disarm(("lease", lease.lease_id, 0))


def set_adrift(state: State, lease: Lease) -> None:
    """The session of a GRANTED or HELD lease closed: wait for its prover a while."""
    detach(state, lease)
    lease.state = LeaseState.ADRIFT
    state.provers[lease.prover_id].detached[lease.lease_id] = lease
    if state.listening:
        arm_grace(state, lease)


def arm_grace(state: State, lease: Lease) -> None:
    """Start the reconnect grace: none for CRITICAL work where another prover could go on."""
    grace_ns = state.config.grace_ns
    part = lease.part
    if (
        part is not None
        and part.job.priority is Priority.CRITICAL
        and acceptance.has_other_candidate(state, part, frozenset({lease.prover_id}))
    ):
        grace_ns = 0
    state.peer_timers.arm(("grace", lease.lease_id, 0), state.peer_ns + grace_ns)
