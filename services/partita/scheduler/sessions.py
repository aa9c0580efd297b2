"""The streams of provers, seen from the core: two mailboxes of one each, and an end.

A link keeps only the newest Hello and the newest Actual that the core has not taken, and only the
newest Desired that the prover was not sent, so memory is bounded whatever a peer does. Nothing here
knows protobuf; `api.dispatch` moves the bytes.
"""

from __future__ import annotations

import asyncio

from partita.scheduler.core.effects import CloseSession
from partita.scheduler.core.events import (
    Event,
    OffersChanged,
    SessionClosed,
    SessionOpened,
    SessionReported,
)
from partita.scheduler.core.model import Actual, Desired, Failure, FailureKind, Hello

STOPPING = "DRAINING"
"""The reason with which every stream ends when the scheduler stops."""


class Link:
    """One stream of one prover.

    Args:
        number: the session's number, never reused.
        hello: its first Hello.
    """

    def __init__(self, number: int, hello: Hello) -> None:
        self.number = number
        self.prover_id = hello.prover_id
        self.instance_id = hello.instance_id
        self.queued = False
        """Whether the engine's inbox holds this link."""
        self.reason = ""
        """Why the scheduler ended it; empty while it has not."""
        self.ended = asyncio.Event()
        """Set once `reason` is."""
        self._hello: Hello | None = None
        self._actual: Actual | None = None
        self._desired: Desired | None = None
        self._fresh = asyncio.Event()

    def offer_hello(self, hello: Hello) -> None:
        """Put a later Hello into the mailbox."""
        self._hello = hello

    def offer_actual(self, actual: Actual) -> None:
        """Put an Actual into the mailbox."""
        self._actual = actual

    def take(self) -> tuple[Hello | None, Actual | None]:
        """Empty the mailbox towards the core."""
        hello, actual = self._hello, self._actual
        self._hello = self._actual = None
        self.queued = False
        return hello, actual

    def put(self, desired: Desired) -> None:
        """Put a Desired into the mailbox towards the prover."""
        self._desired = desired
        self._fresh.set()

    def end(self, reason: str) -> None:
        """End the stream; the first reason stays."""
        if not self.reason:
            self.reason = reason
            self.ended.set()

    async def next_desired(self) -> Desired:
        """Wait for the newest Desired that was not taken yet."""
        while self._desired is None:
            self._fresh.clear()
            await self._fresh.wait()
        desired, self._desired = self._desired, None
        return desired


class Sessions:
    """The open streams by session number."""

    def __init__(self) -> None:
        self.links: dict[int, Link] = {}
        self._last = 0

    def open(self, hello: Hello) -> tuple[Link, SessionOpened]:
        """Make a link for a new stream, and the event that says so."""
        self._last += 1
        link = Link(self._last, hello)
        self.links[link.number] = link
        return link, SessionOpened(link.number, hello)

    def closed(self, link: Link, *, clean: bool) -> SessionClosed:
        """Forget a stream that is over, and return the event that says so."""
        self.links.pop(link.number, None)
        return SessionClosed(link.number, clean)

    def close(self, effect: CloseSession) -> None:
        """End the stream that the core closes."""
        link = self.links.get(effect.session)
        if link is not None:
            link.end(effect.reason)

    def end_all(self) -> None:
        """End every stream because the scheduler stops."""
        for link in self.links.values():
            link.end(STOPPING)


def events_of(
    link: Link, hello: Hello | None, actual: Actual | None, missing: frozenset[bytes]
) -> list[Event]:
    """Return the events of what a mailbox held: Hello before Actual."""
    events: list[Event] = []
    if hello is not None:
        events.append(OffersChanged(link.number, hello))
    if actual is not None:
        events.append(SessionReported(link.number, actual, missing))
    return events


def lost_inputs(actual: Actual) -> list[tuple[str, int]]:
    """Return (job_id, partition index) of every lease that says its input is lost."""
    return [
        (lease.job_id, lease.partition_index)
        for lease in actual.leases
        if isinstance(lease.outcome, Failure) and lease.outcome.kind is FailureKind.INPUT_LOST
    ]
