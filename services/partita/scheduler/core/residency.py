"""Which proving keys an operator keeps in memory, and which go.

    PINNED   wanted as soon as it fits, never evicted; its bytes are no partition's to have
    EVICTED  unwanted once it is idle, then AUTO
    AUTO     the dispatcher decides

A wish for one prover goes before the wish for all; a wish for all replaces those for single
ones. A key that is still to load keeps its bytes free: work beside it waits, so that a stream
of small leases cannot keep it out. On a prover that takes no leases nothing is loaded.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance, keys
from partita.scheduler.core.model import NOTHING, Bytes, Residency
from partita.scheduler.core.records import PinRecord
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Session


def set_residency(state: State, manifest_sha256: bytes, prover_id: str, wish: Residency) -> None:
    """Take an operator's wish; repeating it changes nothing."""
    if prover_id:
        general = state.pins.get((manifest_sha256, ""), False)
        pinned = wish is Residency.PINNED
        _pin(state, manifest_sha256, prover_id, None if pinned == general else pinned)
    else:
        for manifest, single in list(state.pins):
            if manifest == manifest_sha256 and single:
                _pin(state, manifest, single, None)
        _pin(state, manifest_sha256, "", True if wish is Residency.PINNED else None)
    for session in _sessions(state, prover_id):
        note_pins(state, session)
        entry = session.keys.get(manifest_sha256)
        if entry is not None and entry.wanted:
            entry.evicting = wish is Residency.EVICTED
            keys.drop_unwelcome(state, session)
    state.want_dispatch = True


def _pin(state: State, manifest_sha256: bytes, prover_id: str, pinned: bool | None) -> None:
    key = (manifest_sha256, prover_id)
    if state.pins.get(key) == pinned:
        return
    if pinned is None:
        del state.pins[key]
    else:
        state.pins[key] = pinned
    state.persist(PinRecord(manifest_sha256, prover_id, pinned))


def _sessions(state: State, prover_id: str) -> list[Session]:
    return [s for s in state.sessions.values() if not prover_id or s.prover_id == prover_id]


def is_pinned(state: State, manifest_sha256: bytes, prover_id: str) -> bool:
    """Tell whether an operator wants a key kept on a prover."""
    general = state.pins.get((manifest_sha256, ""), False)
    return state.pins.get((manifest_sha256, prover_id), general)


def note_pins(state: State, session: Session) -> None:
    """Bring the pinned keys of a session up to date with pins, offers and failed keys.

    A key that is larger than the whole prover cannot be kept there: it takes nothing away.
    """
    failed = state.provers[session.prover_id].failed_keys
    session.pinned = {
        manifest: None
        for manifest, offer in sorted(session.offers.items())
        if manifest not in failed
        and is_pinned(state, manifest, session.prover_id)
        and offer.key.fits(session.hello.total)
    }


def load_pinned(state: State) -> None:
    """Want pinned keys that fit now; evict idle others for those that do not."""
    for session in state.sessions.values():
        if not session.pinned or not acceptance.accepting(state, session):
            continue
        for manifest in session.pinned:
            if acceptance.is_hot(session, manifest):
                continue
            need = acceptance.to_load(session, session.offers[manifest])
            if need.fits(session.ledger.room()):
                keys.want(state, session, manifest)
            else:
                keys.make_room(state, session, need, session.ledger.room(), manifest)


def change(state: State, manifest_sha256: bytes, prover_id: str, wish: Residency) -> Bytes:
    """Return the memory that a wish would pin, unpin or let go of, on what is connected."""
    total = NOTHING
    for session in _sessions(state, prover_id):
        pinned = manifest_sha256 in session.pinned
        offer = session.offers.get(manifest_sha256)
        entry = session.keys.get(manifest_sha256)
        charged = session.ledger.of(manifest_sha256)
        if wish is Residency.EVICTED:
            changes = entry is not None and entry.wanted
        else:
            changes = offer is not None and pinned != (wish is Residency.PINNED)
        if changes:
            total = total + (charged if offer is None else charged.most(offer.key))
    return total
