"""Prover sessions: opened, reported, closed; adoption of what a prover already holds.

    session  ABSENT → OPEN (Hello) → SYNCED (first Actual) → closed
    prover   mode ACTIVE / CORDONED / DRAINED × trust

The first Actual of a session is its opening balance: what it lists is charged, adopted if
its partition still needs it, and otherwise LEAVING. Nothing is granted before it. Two signals
have two consequences: the stream ended → after a grace the leases are lost; no Actual for a
while → UNRESPONSIVE, no new leases, nothing re-queued.
"""

from __future__ import annotations

from dataclasses import replace

from partita.scheduler.core import acceptance, assembler, failures, keys, leases, residency
from partita.scheduler.core.budget import Ledger
from partita.scheduler.core.effects import CloseSession
from partita.scheduler.core.model import (
    NOTHING,
    Actual,
    CircuitOffer,
    Failure,
    HeldLease,
    Hello,
    Mode,
    PartitionState,
    Phase,
    Proved,
    Trust,
)
from partita.scheduler.core.records import LeaseRecord, ProversForgotten
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import (
    IN_DESIRED,
    KeyState,
    Lease,
    LeaseState,
    Partition,
    Prover,
    Session,
)


def opened(state: State, number: int, hello: Hello) -> None:
    """Open a session, replace an older one of the same prover, or turn the newcomer away."""
    if hello.highest_epoch > state.epoch:
        _refuse(state, number, "STALE_EPOCH")
        return
    if hello.prover_id not in state.provers:
        _forget_absent(state)
    prover = state.prover(hello.prover_id)
    if prover.session is not None:
        older = state.sessions[prover.session]
        same = older.hello.instance_id == hello.instance_id
        alive = state.peer_ns - older.last_seen_peer_ns <= 2 * state.config.beat_ns
        if not same and older.synced and alive:
            _refuse(state, number, "PROVER_ID_IN_USE")
            return
        end_session(state, older, "SUPERSEDED")
    if prover.instance_id != hello.instance_id:
        prover.instance_id = hello.instance_id
        prover.offers = {}
        prover.peaks = {}
        prover.failed_keys = {}
        prover.last_failure = None
    session = Session(
        number=number,
        prover_id=hello.prover_id,
        hello=hello,
        ledger=Ledger(hello.total),
        opened_ns=state.now_ns,
        last_seen_ns=state.now_ns,
        last_seen_peer_ns=state.peer_ns,
    )
    state.sessions[number] = session
    prover.session = number
    _take_offers(state, session, prover, hello)
    failures.instance_returned(state, hello.prover_id, hello.instance_id)
    for lease in list(prover.detached.values()):
        if lease.instance_id != hello.instance_id:
            failures.lease_lost(state, lease)
    state.peer_timers.arm(("silent", "", number), state.peer_ns + state.config.unresponsive_ns)


def _forget_absent(state: State) -> None:
    """Make room for a new prover: pods come and go under ever new names."""
    if len(state.provers) < state.config.max_known_provers:
        return
    gone = [
        prover.prover_id
        for prover in state.provers.values()
        if prover.mode is Mode.ACTIVE
        and prover.trust is Trust.TRUSTED
        and not prover.debits
        and prover.session is None
        and not prover.detached
    ]
    for prover_id in gone:
        del state.provers[prover_id]
    if gone:
        state.persist(ProversForgotten(tuple(gone)))


def _refuse(state: State, number: int, reason: str) -> None:
    state.closing[number] = reason
    state.effects.append(CloseSession(number, reason))


def _take_offers(state: State, session: Session, prover: Prover, hello: Hello) -> None:
    """Replace the offers of a session; what was learnt of an offer lasts while it is the same."""
    offers = {o.manifest_sha256: o for o in hello.offers if not o.unusable_reason}
    for manifest in list(prover.peaks) + list(prover.failed_keys):
        if not _same_needs(offers.get(manifest), prover.offers.get(manifest)):
            prover.peaks.pop(manifest, None)
            prover.failed_keys.pop(manifest, None)
    for manifest in session.offers:
        if manifest not in offers:
            _stop_offering(state, manifest, session.number)
    for manifest in offers:
        state.offering.setdefault(manifest, {})[session.number] = None
    session.hello = hello
    session.ledger.total = hello.total
    session.offers = offers
    prover.offers = offers
    prover.hello = hello
    residency.note_pins(state, session)
    for manifest, entry in session.keys.items():
        if manifest in offers and offers[manifest].key != entry.offered:
            entry.offered = offers[manifest].key.most(entry.shown)
            session.ledger.charge(manifest, entry.offered)


def _same_needs(one: CircuitOffer | None, other: CircuitOffer | None) -> bool:
    """Tell whether two offers differ in nothing but how long a load takes by now."""
    if one is None or other is None:
        return one is other
    return replace(one, load_time_ns=other.load_time_ns) == other


def _stop_offering(state: State, manifest: bytes, number: int) -> None:
    sessions = state.offering[manifest]
    sessions.pop(number, None)
    if not sessions:
        del state.offering[manifest]


def offers_changed(state: State, session: Session, hello: Hello) -> None:
    """Take a later Hello. Gone offers grant nothing new; their leases and charges stay."""
    same = session.hello
    hello = replace(hello, prover_id=same.prover_id, instance_id=same.instance_id)
    _take_offers(state, session, state.provers[session.prover_id], hello)
    if session.synced:
        keys.drop_unwelcome(state, session)
    acceptance.note_slots(state, session)
    state.want_dispatch = True


def end_session(state: State, session: Session, reason: str) -> None:
    """Close a session from our side; its SessionClosed is only the engine's answer."""
    _refuse(state, session.number, reason)
    closed(state, session, clean=False)


def closed(state: State, session: Session, *, clean: bool) -> None:
    """The stream ended: charges end, leases with the right wait for their prover.

    `clean`: the prover said that it holds nothing, so what it was just granted goes to others
    at once and counts nothing.
    """
    number = session.number
    for what in ("silent", "stuck"):
        state.peer_timers.disarm((what, "", number))
    prover = state.provers[session.prover_id]
    prover.session = None
    prover.last_seen_ns = session.last_seen_ns
    for manifest in session.offers:
        _stop_offering(state, manifest, number)
    session.synced = False
    state.dirty_sessions.pop(number, None)
    if session.preparing is not None:
        leases.unbind(state, session.preparing)
    adrift: list[Lease] = []
    for lease in list(session.leases.values()):
        if lease.state is LeaseState.LEAVING:
            leases.drop(state, lease)
        elif lease.state in (LeaseState.GRANTED, LeaseState.HELD):
            adrift.append(lease)
        else:
            leases.detach(state, lease)
            prover.detached[lease.lease_id] = lease
    for lease in adrift:
        leases.set_adrift(state, lease)
        if clean:
            lease.phase = Phase.UNSPECIFIED
            failures.lease_lost(state, lease)
    state.open_sessions.pop(number, None)
    state.open_normal.pop(number, None)
    del state.sessions[number]
    state.want_dispatch = True


def reported(state: State, session: Session, actual: Actual, missing: frozenset[bytes]) -> None:
    """Take in an Actual: keys, leases with their outcomes, what is no longer there."""
    first = not session.synced
    if any(_is_foreign(state, session, held.lease_id) for held in actual.leases):
        end_session(state, session, "FOREIGN_LEASE")
        return
    session.actual = actual
    session.last_seen_ns = state.now_ns
    session.last_seen_peer_ns = state.peer_ns
    session.unresponsive = False
    session.applied = max(session.applied, min(actual.applied, session.revision))
    if first:
        session.synced = True
        state.touch(session)
    _await_applied(state, session)
    prover = state.provers[session.prover_id]
    for entry in keys.report(state, session, actual, first=first):
        # Before the leases: what the prover says of one whose key failed is no fault of it.
        prover.failed_keys[entry.manifest_sha256] = entry.reason
        residency.note_pins(state, session)
        _hand_back(state, session, entry.manifest_sha256)
    listed = {held.lease_id: held for held in actual.leases}
    if first:
        _settle_detached(state, session, listed)
    for held in listed.values():
        lease = state.leases.get(held.lease_id)
        if lease is None:
            lease = _found(state, session, held)
        elif lease.session is None:
            _readmit(state, session, lease, held)
        if held is not lease.shown:
            leases.show(state, session, lease, held)
        if held.outcome is not None:
            _take(state, session, lease, held.outcome, missing)
    for lease in list(session.leases.values()):
        if lease.lease_id not in listed:
            _absent(state, session, lease, actual.applied)
    keys.drop_unwelcome(state, session)
    acceptance.note_slots(state, session)
    state.want_dispatch = True


def _is_foreign(state: State, session: Session, lease_id: str) -> bool:
    """Tell whether a lease belongs to another prover or process: only a copied state says so."""
    lease = state.leases.get(lease_id)
    return lease is not None and (
        lease.prover_id != session.prover_id
        or lease.instance_id != session.hello.instance_id
        or lease.session not in (None, session.number)
    )


def _await_applied(state: State, session: Session) -> None:
    if session.awaited_revision and session.applied >= session.awaited_revision:
        session.awaited_revision = 0
        state.peer_timers.disarm(("stuck", "", session.number))
    if session.awaited_revision == 0 and session.applied < session.revision:
        state.await_revision(session)


def _take(
    state: State,
    session: Session,
    lease: Lease,
    outcome: Proved | Failure,
    missing: frozenset[bytes],
) -> None:
    """Take an outcome, once per lease id; it frees the slot whatever it says."""
    leases.show_outcome(state, lease)
    part = lease.part
    if part is None or lease.state is LeaseState.CHECKING or lease.lease_id in part.taken:
        return
    if isinstance(outcome, Proved):
        assembler.proved(state, lease, outcome)
    elif lease.state is LeaseState.HELD and session.actual is not None:
        failures.lease_failed(state, lease, outcome, session.actual.condition, missing)


def _absent(state: State, session: Session, lease: Lease, applied: int) -> None:
    """An Actual does not list a lease: gone, lost, or not taken in yet."""
    lease.shown = None
    if lease.state is LeaseState.LEAVING:
        if applied >= lease.removal_revision:
            leases.drop(state, lease)
    elif applied >= lease.grant_revision:
        if lease.state in (LeaseState.GRANTED, LeaseState.HELD):
            failures.lease_dropped(state, lease)
        else:
            leases.note_charge(session, lease, NOTHING)


def _hand_back(state: State, session: Session, manifest: bytes) -> None:
    """A key cannot be used there: its leases go elsewhere, which is not their fault."""
    for lease in list(session.leases.values()):
        part = lease.part
        if (
            part is not None
            and part.job.manifest_sha256 == manifest
            and lease.state in (LeaseState.GRANTED, LeaseState.HELD)
            and lease.has_right
        ):
            state.save_partition(part)
            leases.end_right(state, lease)
            failures.wait_again(state, part)


def _settle_detached(state: State, session: Session, listed: dict[str, HeldLease]) -> None:
    """First Actual: leases without a session are listed again, or lost."""
    detached = state.provers[session.prover_id].detached
    for lease in list(detached.values()):
        held = listed.get(lease.lease_id)
        if held is not None and lease.instance_id == session.hello.instance_id:
            _readmit(state, session, lease, held)
        elif lease.state is LeaseState.ADRIFT:
            rival = _listed_for(lease.part, session.prover_id, listed)
            if rival is not None:
                # The prover holds the same partition under another lease: that one goes on.
                part = lease.part
                leases.end_right(state, lease)
                if part is not None and part.open:
                    failures.wait_again(state, part)
            elif lease.listed:
                failures.lease_dropped(state, lease)
            else:
                failures.lease_lost(state, lease)


def _listed_for(
    part: Partition | None, prover_id: str, listed: dict[str, HeldLease]
) -> HeldLease | None:
    if part is None:
        return None
    for held in listed.values():
        if (held.job_id, held.partition_index) == (part.job.job_id, part.index) and _may_adopt(
            part, prover_id, held
        ):
            return held
    return None


def _readmit(state: State, session: Session, lease: Lease, held: HeldLease) -> None:
    """A lease without a session is held by a new session of the same instance."""
    state.provers[lease.prover_id].detached.pop(lease.lease_id, None)
    state.peer_timers.disarm(("grace", lease.lease_id, 0))
    if lease.state is LeaseState.ADRIFT:
        lease.state = LeaseState.HELD
    _enter(state, session, lease, held)


def _enter(state: State, session: Session, lease: Lease, held: HeldLease) -> None:
    """Charge a listed lease to a session; in Desired it needs its key to be wanted."""
    lease.grant_revision = state.touch(session)
    lease.shown = None
    lease.phase = Phase.UNSPECIFIED
    lease.phase_since_ns = -1
    wanted = lease.state in IN_DESIRED and lease.part is not None
    if wanted and lease.part is not None:
        manifest = lease.part.job.manifest_sha256
        entry = session.keys.get(manifest)
        if entry is None or entry.state is not KeyState.FAILED:
            keys.want(state, session, manifest)
    leases.attach(state, session, lease, held.held)


def _may_adopt(part: Partition, prover_id: str, held: HeldLease) -> bool:
    """Tell whether a listed lease may have the right to its partition, were it WAITING."""
    return (
        part.open
        and held.lease_id not in part.taken
        and not any((f.attempt, f.prover_id) == (held.attempt, prover_id) for f in part.failures)
    )


def _found(state: State, session: Session, held: HeldLease) -> Lease:
    """Make the row of a lease that is listed and not in the session's table.

    It is adopted (HELD) if its partition is WAITING and this attempt has not failed, else it
    is LEAVING; charged either way.
    """
    job = state.jobs.get(held.job_id)
    part = None
    if job is not None and held.partition_index < len(job.partitions):
        part = job.partitions[held.partition_index]
    offer = None if part is None else session.offers.get(part.job.manifest_sha256)
    timeout_ns, fetch_ns = leases.timeouts(state, offer, held.attempt)
    lease = Lease(
        lease_id=held.lease_id,
        part=part,
        attempt=held.attempt,
        prover_id=session.prover_id,
        instance_id=session.hello.instance_id,
        session=None,
        state=LeaseState.LEAVING,
        reserved=held.held if offer is None else acceptance.peak_of(state, session, offer),
        timeout_ns=timeout_ns,
        fetch_timeout_ns=fetch_ns,
        grant_revision=0,
        granted_ns=state.now_ns,
    )
    adopt = (
        part is not None
        and part.state is PartitionState.WAITING
        and _may_adopt(part, session.prover_id, held)
    )
    if adopt and part is not None:
        lease.state = LeaseState.HELD
        part.attempt = max(part.attempt, held.attempt)
        leases.give_right(state, lease, part)
        state.persist(
            LeaseRecord(
                lease.lease_id,
                part.job.job_id,
                part.index,
                lease.attempt,
                lease.prover_id,
                lease.instance_id,
                lease.reserved,
            )
        )
        if part.job.started_ns is None:
            part.job.started_ns = state.now_ns
    _enter(state, session, lease, held)
    if not adopt:
        leases.leave(state, lease)
    return lease


def stuck(state: State, session: Session) -> None:
    """A Desired is not taken in: close the stream if beats come, else leave it to `silent`."""
    if not session.awaited_revision:
        return
    if session.unresponsive:
        state.await_revision(session)
    else:
        end_session(state, session, "STUCK")


def silent(state: State, session: Session) -> None:
    """The silence timer fell due: UNRESPONSIVE first, STUCK after much longer."""
    config = state.config
    silent_ns = state.peer_ns - session.last_seen_peer_ns
    name = ("silent", "", session.number)
    if silent_ns >= config.stuck_silent_ns:
        end_session(state, session, "STUCK")
    elif silent_ns >= config.unresponsive_ns:
        session.unresponsive = True
        acceptance.note_slots(state, session)
        state.want_dispatch = True
        state.peer_timers.arm(name, session.last_seen_peer_ns + config.stuck_silent_ns)
    else:
        state.peer_timers.arm(name, session.last_seen_peer_ns + config.unresponsive_ns)
