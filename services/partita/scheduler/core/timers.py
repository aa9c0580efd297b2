"""Deadlines without a clock: armed by key, popped when the caller says what time it is.

A timer is named by a tuple whose first item says what it is for; arming a name again
replaces its deadline. Nothing here reads time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

TimerName = tuple[str, str, int]
"""(what, id, number): e.g. ("deadline", job_id, 0) or ("silent", "", session)."""


@dataclass(slots=True)
class Timers:
    """A set of named deadlines. Arming and disarming cost O(log n) at most."""

    armed: dict[TimerName, int] = field(default_factory=dict)
    _live: dict[TimerName, int] = field(default_factory=dict)
    """The count of each armed timer's one valid heap entry."""
    _heap: list[tuple[int, int, TimerName]] = field(default_factory=list)
    _count: int = 0

    def arm(self, name: TimerName, deadline_ns: int) -> None:
        """Let `name` fall due at `deadline_ns`, whatever it was before."""
        if self.armed.get(name) == deadline_ns:
            return
        self._count += 1
        self.armed[name] = deadline_ns
        self._live[name] = self._count
        heapq.heappush(self._heap, (deadline_ns, self._count, name))
        if len(self._heap) > 2 * len(self.armed) + 64:
            self._heap = [e for e in self._heap if self._live.get(e[2]) == e[1]]
            heapq.heapify(self._heap)

    def disarm(self, name: TimerName) -> None:
        """Forget `name`; unknown names are fine."""
        if name in self.armed:
            del self.armed[name]
            del self._live[name]

    def next_ns(self) -> int | None:
        """Return the earliest deadline."""
        heap = self._heap
        while heap and self._live.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ns: int) -> TimerName | None:
        """Remove and return the earliest timer that is due, if any."""
        due = self.next_ns()
        if due is None or due > now_ns:
            return None
        name = heapq.heappop(self._heap)[2]
        self.disarm(name)
        return name


@dataclass(slots=True)
class PeerClock:
    """Time by which peers are judged: it stands still while this service was stalled.

    The engine turns at least once per beat while a peer deadline is armed (`next_deadline_ns`
    says so). A longer gap between two turns is therefore our own stall, not the peers'
    silence, and its excess over a beat is not counted against them.
    """

    beat_ns: int
    last_ns: int = 0
    stalled_ns: int = 0
    started: bool = False

    def turn(self, now_ns: int) -> int:
        """Note a turn at `now_ns`; return the peer time."""
        now_ns = max(now_ns, self.last_ns)
        gap_ns = now_ns - self.last_ns
        if self.started and gap_ns > self.beat_ns:
            self.stalled_ns += gap_ns - self.beat_ns
        self.started = True
        self.last_ns = now_ns
        return now_ns - self.stalled_ns
