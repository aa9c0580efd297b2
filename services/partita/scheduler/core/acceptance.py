"""Who may run what: acceptance, slots, room, and the arithmetic that explains a wait.

A prover *accepts* a lane if it could hold key and peak when empty; it has a *slot* if a
further lease may be granted; it has *room* if key and working set fit beside what is charged
now. Pure questions over the tables: nothing here changes them, except `note_slots`, which
keeps the index of open sessions.
"""

from __future__ import annotations

from partita.scheduler.core.model import (
    NOTHING,
    Bytes,
    CircuitOffer,
    Condition,
    Mode,
    Priority,
    Trust,
)
from partita.scheduler.core.queue import lane_key
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import LaneKey, LeaseState, Partition, Session

_GIB = 1 << 30
_MIB = 1 << 20


def accepting(state: State, session: Session) -> bool:
    """Tell whether a session takes new leases at all."""
    prover = state.provers[session.prover_id]
    return (
        session.synced
        and not session.unresponsive
        and session.actual is not None
        and session.actual.condition is Condition.READY
        and prover.mode is Mode.ACTIVE
        and prover.trust is not Trust.QUARANTINED
    )


def on_probation(state: State, session: Session) -> bool:
    """Tell whether its prover takes one lease at a time, and no CRITICAL one."""
    return state.provers[session.prover_id].trust is Trust.PROBATION


def _awaits_verdict(session: Session) -> bool:
    """Tell whether a lease of the session is still to be judged."""
    return any(
        lease.slot or lease.state is LeaseState.CHECKING for lease in session.leases.values()
    )


def note_slots(state: State, session: Session) -> None:
    """Bring the index of open sessions up to date with one session."""
    number = session.number
    blocked = (
        session.alone is not None
        or len(session.leases) >= state.config.max_leases_per_session
        or not accepting(state, session)
    )
    normal = not blocked and session.used_slots < session.hello.max_leases
    express = not blocked and session.used_express < session.hello.express_leases
    if on_probation(state, session):
        normal = normal and not _awaits_verdict(session)
        express = False
    if normal:
        state.open_normal[number] = None
    else:
        state.open_normal.pop(number, None)
    if normal or express:
        state.open_sessions[number] = None
        state.want_dispatch = True
    else:
        state.open_sessions.pop(number, None)


def peak_of(state: State, session: Session, offer: CircuitOffer) -> Bytes:
    """Return what a lease may need there: the offer's peak, or a raised one."""
    raised = state.provers[session.prover_id].peaks.get(offer.manifest_sha256)
    return offer.peak if raised is None else offer.peak.most(raised)


def usable_offer(state: State, session: Session, lane: LaneKey) -> CircuitOffer | None:
    """Return the session's offer for a lane's circuit and format, if it can be used."""
    offer = session.offers.get(lane.manifest_sha256)
    if (
        offer is None
        or lane.input_format not in offer.input_formats
        or lane.manifest_sha256 in state.provers[session.prover_id].failed_keys
    ):
        return None
    return offer


def pinned_bytes(session: Session, beside: bytes, *, to_come: bool = False) -> Bytes:
    """Return what pinned keys other than `beside` take there, or have yet to take."""
    total = NOTHING
    for manifest in session.pinned:
        entry = session.keys.get(manifest)
        if manifest == beside or (to_come and entry is not None and entry.wanted):
            continue
        offer = session.offers[manifest]
        charged = session.ledger.of(manifest)
        total = total + charged.most(offer.key)
        if to_come:
            total = total - charged
    return total


def usable_total(session: Session, offer: CircuitOffer) -> Bytes:
    """Return what a circuit may take of an empty session."""
    usable = session.hello.total - session.stuck
    return usable - pinned_bytes(session, offer.manifest_sha256) if session.pinned else usable


def room_for(session: Session, offer: CircuitOffer) -> Bytes:
    """Return what a circuit may take now: pinned keys that are still to load come first."""
    if not session.pinned:
        return session.ledger.room()
    return session.ledger.room() - pinned_bytes(session, offer.manifest_sha256, to_come=True)


def could_hold(state: State, session: Session, offer: CircuitOffer) -> bool:
    """Tell whether the session, were it empty, could hold key and working set."""
    # Asked of every prover for each submission: compared without a sum of its own.
    key, peak, usable = offer.key, peak_of(state, session, offer), usable_total(session, offer)
    return key.host + peak.host <= usable.host and key.device + peak.device <= usable.device


def accepts(state: State, session: Session, lane: LaneKey) -> bool:
    """Tell whether the session accepts a lane, its exclusions aside."""
    if not accepting(state, session) or (lane.critical and on_probation(state, session)):
        return False
    offer = usable_offer(state, session, lane)
    return offer is not None and could_hold(state, session, offer)


def candidates(state: State, lane: LaneKey) -> list[Session]:
    """Return the sessions that accept a lane: the excluded ones only if no other is left."""
    every = [
        session
        for number in state.offering.get(lane.manifest_sha256, ())
        if accepts(state, session := state.sessions[number], lane)
    ]
    if not lane.excluded:
        return every
    return [s for s in every if s.prover_id not in lane.excluded] or every


def has_other_candidate(state: State, part: Partition, without: frozenset[str]) -> bool:
    """Tell whether a prover outside `without` accepts the partition."""
    lane = lane_key(part, state.config.alone_after_crashes)
    return any(
        session.prover_id not in without and accepts(state, session, lane)
        for number in state.offering.get(lane.manifest_sha256, ())
        if (session := state.sessions[number])
    )


def slot_for(state: State, session: Session, priority: Priority, alone: bool) -> str:
    """Return "normal", "express" or "" for the slot a lease could take there."""
    if session.number not in state.open_sessions or (alone and session.leases):
        return ""
    if priority is Priority.CRITICAL and on_probation(state, session):
        return ""
    if session.number in state.open_normal:
        return "normal"
    return "express" if priority is Priority.CRITICAL else ""


def is_hot(session: Session, manifest_sha256: bytes) -> bool:
    """Tell whether the key is wanted there and not FAILED."""
    entry = session.keys.get(manifest_sha256)
    return entry is not None and entry.hot


def to_load(session: Session, offer: CircuitOffer) -> Bytes:
    """Return what wanting the key would add to the charge."""
    if offer.manifest_sha256 not in session.keys:
        return offer.key
    charged = session.ledger.of(offer.manifest_sha256)
    if offer.key.fits(charged):
        return NOTHING
    return charged.most(offer.key) - charged


def needed(state: State, session: Session, offer: CircuitOffer) -> Bytes:
    """Return what a grant would add to the charge: key and working set in one step."""
    return to_load(session, offer) + peak_of(state, session, offer)


def needs_eviction(state: State, session: Session, offer: CircuitOffer) -> bool:
    """Tell whether other keys must go before a lease fits, even with no lease running."""
    keys = NOTHING
    for manifest in session.keys:
        if manifest != offer.manifest_sha256:
            keys = keys + session.ledger.of(manifest)
    keys = keys + pinned_bytes(session, offer.manifest_sha256, to_come=True)
    need = keys + offer.key + peak_of(state, session, offer)
    return not need.fits(session.hello.total - session.stuck)


def amount(size_bytes: int) -> str:
    """Write a size for people."""
    if abs(size_bytes) >= _GIB:
        return f"{size_bytes / _GIB:.1f} GiB"
    return f"{size_bytes / _MIB:.1f} MiB"


def amounts(memory: Bytes) -> str:
    """Write an amount of memory for people; device memory only where there is some."""
    device = f" and {amount(memory.device)} of device memory" if memory.device else ""
    return amount(memory.host) + device


def _missing(need: Bytes, room: Bytes) -> tuple[int, int, str]:
    """Return needed and free bytes of the scarcer component, and its name."""
    if need.device > room.device:
        return need.device, room.device, " of device memory"
    return need.host, room.host, ""


def waiting_for(state: State, part: Partition) -> str:
    """Say in one line what a waiting partition waits for, with the arithmetic."""
    if part.backing_off:
        last = part.failures[-1] if part.failures else None
        why = f" after {last.reason} on {last.prover_id}" if last else ""
        return f"waits before another try{why}"
    lane = part.lane
    if lane is None:
        return ""
    found = candidates(state, lane)
    if not found:
        return _unschedulable(state, lane)
    preparing = state.sessions.get(part.preparing) if part.preparing is not None else None
    if preparing is not None:
        return f"waits for {preparing.prover_id} to unload another circuit's key"
    with_slot = [s for s in found if slot_for(state, s, part.job.priority, lane.alone)]
    if not with_slot:
        if lane.alone:
            return "runs alone after crashes: waits for an empty prover"
        return f"waits for a slot on {len(found)} prover(s)"
    rooms = [(s, room_for(s, s.offers[lane.manifest_sha256])) for s in with_slot]
    best, need, room = min(
        ((s, needed(state, s, s.offers[lane.manifest_sha256]), room) for s, room in rooms),
        key=lambda entry: entry[1].host + entry[1].device - entry[2].host,
    )
    if need.fits(room):
        return "waits behind earlier work"
    want, free, what = _missing(need, room)
    return f"needs {amount(want)}{what} on {best.prover_id}, {max(free, 0) / _GIB:.1f} free"


def _unschedulable(state: State, lane: LaneKey) -> str:
    """Say why no prover accepts a lane."""
    sessions = [state.sessions[n] for n in state.offering.get(lane.manifest_sha256, ())]
    if not sessions:
        return f"unschedulable: no connected prover offers circuit {lane.circuit_id}"
    reasons = []
    for session in sorted(sessions, key=lambda s: s.prover_id):
        offer = session.offers[lane.manifest_sha256]
        prover = state.provers[session.prover_id]
        if lane.manifest_sha256 in prover.failed_keys:
            why = f"its key failed: {prover.failed_keys[lane.manifest_sha256]}"
        elif lane.input_format not in offer.input_formats:
            why = f"does not take {lane.input_format}"
        elif not could_hold(state, session, offer):
            need = offer.key + peak_of(state, session, offer)
            want, most, what = _missing(need, usable_total(session, offer))
            kept = pinned_bytes(session, lane.manifest_sha256)
            beside = " beside its pinned keys" if kept != NOTHING else ""
            why = f"needs {amount(want)}{what}, holds {amount(most)} when empty{beside}"
        elif session.unresponsive:
            why = "unresponsive"
        elif not session.synced:
            why = "has not reported yet"
        elif prover.mode is not Mode.ACTIVE:
            why = prover.mode.name.lower()
        elif prover.trust is Trust.QUARANTINED:
            why = prover.trust.name.lower()
        elif lane.critical and prover.trust is Trust.PROBATION:
            why = "on probation, takes no critical work"
        else:
            why = session.actual.condition.name.lower() if session.actual else "not ready"
        reasons.append(f"{session.prover_id}: {why}")
    shown = reasons[:4] + ([f"and {len(reasons) - 4} more"] if len(reasons) > 4 else [])
    return "unschedulable: " + "; ".join(shown)
