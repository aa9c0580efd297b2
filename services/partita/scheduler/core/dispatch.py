"""The dispatcher: the only place that grants.

The least waiting partition takes, among the provers that accept it, the best one with a slot
and the bytes. If none has, all provers it would accept are *claimed*: nothing behind it starts
there, so on each prover nobody overtakes. A head that no prover accepts delays nobody.
Nothing is popped before it is reserved: pop, reserve and lease are one step.

Cost of a turn: O(1) if no unclaimed prover has an open slot; otherwise the heads of the lanes
(a handful), each once against the open provers. Never all partitions.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from partita.scheduler.core import acceptance, backoff, keys, leases, residency
from partita.scheduler.core.model import Bytes, Priority
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import LaneKey, Partition, PartitionKey, Session

_CRITICAL_CLASS = -Priority.CRITICAL

_Rank = tuple[bool, int, int, str]
_Slot = str
"""As `acceptance.slot_for` names it."""


class _Ready(NamedTuple):
    """A session that can start a lane's head, ordered by rank."""

    rank: _Rank
    number: int
    grants: int
    """Grants to it in this turn when it was weighed: it is stale after another."""
    slot: _Slot


def dispatch(state: State) -> None:
    """Grant whatever may start now; a second call in a row grants nothing."""
    state.want_dispatch = False
    if state.pins:
        residency.load_pinned(state)
    if not state.open_sessions or not state.queue.size:
        return
    claimed: set[int] = set()
    ranking = _Ranking(state)
    heads = state.queue.heads()
    while heads and _somebody_is_open(state, claimed, critical=heads[0][0][0] == _CRITICAL_CLASS):
        _, lane = heapq.heappop(heads)
        part = state.queue.lanes[lane].head()
        if backoff.must_wait(state, part):
            backoff.hold(state, part)
            _push_head(state, heads, lane)
            continue
        best = ranking.best(part, lane, claimed)
        if best is not None:
            session, slot = best
            leases.grant(state, session, part, express=slot == "express", alone=lane.alone)
            ranking.granted(session)
            _push_head(state, heads, lane)
            continue
        want = wanted(state, part, lane)
        _prepare(state, part, lane, want, claimed)
        claimed.update(session.number for session in want)


def _push_head(state: State, heads: list[tuple[PartitionKey, LaneKey]], lane: LaneKey) -> None:
    """Its head has left the lane: the next one, if there is one, comes to the heads."""
    rest = state.queue.lanes.get(lane)
    if rest is not None:
        heapq.heappush(heads, (rest.head().key, lane))


def _somebody_is_open(state: State, claimed: set[int], *, critical: bool) -> bool:
    sessions = state.open_sessions if critical else state.open_normal
    if len(sessions) > len(claimed):
        return True
    return any(number not in claimed for number in sessions)


def wanted(state: State, part: Partition, lane: LaneKey) -> list[Session]:
    """Return the candidates that are hot for a head, or cold where the switch pays."""
    found = acceptance.candidates(state, lane)
    factor = state.config.key_switch_factor
    if factor == 0:
        # Strict order: the head is older than what waits for any other key, so it always pays.
        return found
    manifest = lane.manifest_sha256
    hot = [session for session in found if acceptance.is_hot(session, manifest)]
    return [
        session
        for session in found
        if acceptance.is_hot(session, manifest) or _pays(state, session, part, lane, len(hot))
    ]


def _pays(state: State, session: Session, part: Partition, lane: LaneKey, n_hot: int) -> bool:
    """Tell whether loading the key on a cold prover pays (rules a to d)."""
    if n_hot == 0:
        return True
    own = [
        oldest
        for manifest, entry in session.keys.items()
        if entry.hot and (oldest := state.queue.oldest_of(manifest)) is not None
    ]
    if not own:
        return True
    oldest = min(own, key=lambda other: other.key)
    if part.job.priority > oldest.job.priority:
        return True
    offer = session.offers[lane.manifest_sha256]
    older = state.queue.ahead(oldest.key[0], oldest.key[1], lane.manifest_sha256)
    return older * offer.expected_ns > state.config.key_switch_factor * offer.load_time_ns * n_hot


class _Ranking:
    """The sessions that can start the heads of lanes, best first, kept through one turn.

    A grant changes what its own session can do and nobody else, so only that one is weighed
    again: a turn looks at every open session once a lane, not once a grant. A claim takes
    sessions away, and what a claim's eviction changes are sessions it claims.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._lanes: dict[LaneKey, list[_Ready]] = {}
        self._grants: dict[int, int] = {}

    def best(
        self, part: Partition, lane: LaneKey, claimed: set[int]
    ) -> tuple[Session, _Slot] | None:
        """Return the best session that can start the head now, with the kind of slot."""
        ready = self._lanes.get(lane)
        if ready is None:
            ready = [entry for number in self._pool(lane) if (entry := self._weigh(number, lane))]
            heapq.heapify(ready)
            self._lanes[lane] = ready
        while ready and (ready[0].number in claimed or self._is_stale(ready[0])):
            heapq.heappop(ready)
        if not ready:
            return None
        if lane.excluded or self._state.config.key_switch_factor:
            allowed = {session.number for session in wanted(self._state, part, lane)} - claimed
            found = [
                entry for entry in ready if entry.number in allowed and not self._is_stale(entry)
            ]
            best = min(found, default=None)
        else:
            best = ready[0]
        return None if best is None else (self._state.sessions[best.number], best.slot)

    def granted(self, session: Session) -> None:
        """Weigh a session again that was granted a lease."""
        number = session.number
        self._grants[number] = self._grants.get(number, 0) + 1
        for lane, ready in self._lanes.items():
            if number in self._pool(lane) and (entry := self._weigh(number, lane)):
                heapq.heappush(ready, entry)

    def _pool(self, lane: LaneKey) -> dict[int, None]:
        return self._state.open_sessions if lane.critical else self._state.open_normal

    def _is_stale(self, entry: _Ready) -> bool:
        return entry.grants != self._grants.get(entry.number, 0)

    def _weigh(self, number: int, lane: LaneKey) -> _Ready | None:
        state, session = self._state, self._state.sessions[number]
        priority = Priority.CRITICAL if lane.critical else Priority.NORMAL
        slot = acceptance.slot_for(state, session, priority, lane.alone)
        offer = acceptance.usable_offer(state, session, lane)
        if not slot or offer is None:
            return None
        # What fits beside all that is charged also fits an empty prover: no `could_hold` here.
        load = acceptance.to_load(session, offer)
        need = load + acceptance.peak_of(state, session, offer)
        if not need.fits(acceptance.room_for(session, offer)):
            return None
        return _Ready(_rank(session, lane, load), number, self._grants.get(number, 0), slot)


def _rank(session: Session, lane: LaneKey, load: Bytes) -> _Rank:
    """Order ready sessions: hot, fewest bytes to load (`load`), least loaded, id."""
    return (
        not acceptance.is_hot(session, lane.manifest_sha256),
        load.host + load.device,
        session.used_slots + session.used_express,
        session.prover_id,
    )


def _prepare(
    state: State, part: Partition, lane: LaneKey, want: list[Session], claimed: set[int]
) -> None:
    """Let one prover evict idle keys for the head, if that is what it waits for."""
    bound = state.sessions.get(part.preparing) if part.preparing is not None else None
    if bound is not None:
        if bound in want:
            keys.evict_for(state, bound)
            return
        leases.unbind(state, part)
    able = [
        session
        for session in want
        if session.number not in claimed
        and session.preparing is None
        and acceptance.slot_for(state, session, part.job.priority, lane.alone)
        and acceptance.needs_eviction(state, session, session.offers[lane.manifest_sha256])
    ]
    if not able:
        return
    manifest = lane.manifest_sha256
    best = min(
        able,
        key=lambda session: _rank(
            session, lane, acceptance.to_load(session, session.offers[manifest])
        ),
    )
    best.preparing = part
    part.preparing = best.number
    keys.evict_for(state, best)


def startable(state: State) -> Partition | None:
    """Return a partition that `dispatch` would grant now; asked by `check`, grants nothing."""
    claimed: set[int] = set()
    ranking = _Ranking(state)
    for _, lane in state.queue.heads():
        part = state.queue.lanes[lane].head()
        if backoff.must_wait(state, part):
            continue
        if ranking.best(part, lane, claimed) is not None:
            return part
        claimed.update(session.number for session in wanted(state, part, lane))
    return None
