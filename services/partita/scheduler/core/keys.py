"""Resident proving keys of each session: what is wanted, shown, charged and evicted.

    ABSENT (no row) → WANTED → LOADING → READY → unwanted → LEAVING → absent in Actual → ABSENT
    FAILED: that offer is unusable there until another instance or a changed offer.

A key is charged the larger of offer and shown from wanted until an Actual that took in its
removal does not list it; wanting a LEAVING one again is legal at any time and never lowers
the charge. The scheduler decides what comes and goes, the prover executes, and neither
believes the other before a report.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance
from partita.scheduler.core.model import NOTHING, Actual, Bytes, HeldKey, KeyShown
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import KeyEntry, KeyState, Session


def want(state: State, session: Session, manifest_sha256: bytes) -> None:
    """Put a key into Desired, charging it; one that is wanted already stays as it is."""
    entry = session.keys.get(manifest_sha256)
    if entry is None:
        offer = session.offers.get(manifest_sha256)
        entry = session.keys[manifest_sha256] = KeyEntry(
            manifest_sha256, KeyState.WANTED, offer.key if offer else NOTHING, wanted=False
        )
    if not entry.wanted:
        entry.wanted = True
        entry.state = KeyState.WANTED
        entry.revision = state.touch(session)
    entry.used_ns = state.now_ns
    _charge(session, entry)


def unwant(state: State, session: Session, entry: KeyEntry) -> None:
    """Take a key out of Desired; its charge stays until it is seen to be absent."""
    if entry.wanted:
        entry.wanted = False
        entry.evicting = False
        entry.revision = state.touch(session)
        if entry.state is not KeyState.FAILED:
            entry.state = KeyState.LEAVING


def refer(session: Session, manifest_sha256: bytes, by: int) -> None:
    """Count a lease of this session that uses the key in (+1) or out (-1)."""
    entry = session.keys.get(manifest_sha256)
    if entry is not None:
        entry.references += by


def _charge(session: Session, entry: KeyEntry) -> None:
    session.ledger.charge(entry.manifest_sha256, entry.shown.most(entry.offered))


def report(state: State, session: Session, actual: Actual, *, first: bool) -> list[KeyEntry]:
    """Take in the keys of an Actual; return those that failed just now."""
    failed: list[KeyEntry] = []
    listed: set[bytes] = set()
    for held in actual.keys:
        listed.add(held.manifest_sha256)
        entry = session.keys.get(held.manifest_sha256)
        if entry is None:
            entry = _found(state, session, held, first=first)
        entry.shown = held.held
        entry.reason = held.reason
        if held.state is KeyShown.FAILED and (not entry.wanted or entry.revision <= actual.applied):
            if entry.state is not KeyState.FAILED:
                entry.state = KeyState.FAILED
                failed.append(entry)
            unwant(state, session, entry)
        elif entry.wanted:
            ready = held.state is KeyShown.READY
            entry.state = KeyState.READY if ready else KeyState.LOADING
        _charge(session, entry)
    for manifest, entry in list(session.keys.items()):
        if manifest in listed:
            continue
        entry.shown = NOTHING
        if not entry.wanted and entry.revision <= actual.applied:
            del session.keys[manifest]
            session.ledger.release(manifest)
        else:
            if entry.wanted:
                entry.state = KeyState.WANTED
            _charge(session, entry)
    return failed


def _found(state: State, session: Session, held: HeldKey, *, first: bool) -> KeyEntry:
    """Make the row of a key that the prover holds unasked: kept if it opens a session so."""
    offer = session.offers.get(held.manifest_sha256)
    entry = session.keys[held.manifest_sha256] = KeyEntry(
        held.manifest_sha256,
        KeyState.LEAVING,
        NOTHING if offer is None else offer.key,
        wanted=False,
        # Nothing sent so far in this session names the key: the next Desired removes it.
        revision=max(session.revision, 1),
        used_ns=state.now_ns,
    )
    alive = held.state in (KeyShown.LOADING, KeyShown.READY)
    if first and offer is not None and alive:
        want(state, session, held.manifest_sha256)
    return entry


def drop_unwelcome(state: State, session: Session) -> None:
    """Unwant idle keys whose offer is gone, or that an operator evicts."""
    for manifest, entry in session.keys.items():
        unwelcome = manifest not in session.offers or entry.evicting
        if entry.wanted and unwelcome and entry.references == 0:
            unwant(state, session, entry)


def evict_for(state: State, session: Session) -> None:
    """Unwant idle keys until the prepared partition's key and working set fit.

    Keys in use go when they become idle, because the dispatcher asks again whenever it comes
    to that partition.
    """
    part = session.preparing
    if part is None:
        return
    offer = session.offers.get(part.job.manifest_sha256)
    if offer is None:
        return
    need = acceptance.needed(state, session, offer)
    make_room(state, session, need, acceptance.room_for(session, offer), offer.manifest_sha256)


def make_room(state: State, session: Session, need: Bytes, room: Bytes, beside: bytes) -> None:
    """Unwant idle keys, least recently used first, until `need` fits into `room` and theirs.

    What is LEAVING already counts as gone; `beside` and pinned keys stay.
    """
    going = NOTHING
    for manifest, entry in session.keys.items():
        if not entry.wanted and manifest != beside:
            going = going + session.ledger.of(manifest)
    idle = sorted(
        (
            entry
            for manifest, entry in session.keys.items()
            if entry.wanted
            and entry.references == 0
            and manifest != beside
            and manifest not in session.pinned
        ),
        key=lambda entry: (entry.used_ns, entry.manifest_sha256),
    )
    for entry in idle:
        if need.fits(room + going):
            return
        going = going + session.ledger.of(entry.manifest_sha256)
        unwant(state, session, entry)
