"""The one owner of the scheduler's core: events in, in order; effects out.

Everything happens on the event loop's thread, in turns. A turn takes what is in the inbox, hands it
to the core, lets the core's clock tick, and then, once for the whole turn, saves the records,
sends each changed Desired and wakes those who watch a job. The executors behind the effects decide
nothing.

If the core finds that it is broken, the engine stops: `broken` is set and nothing goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from partita.scheduler.blobs import BlobMissingError, BlobStore
from partita.scheduler.core.effects import (
    Accept,
    AnswerWaiter,
    CloseSession,
    DropInputs,
    Effect,
    JobChanged,
    Persist,
    Refuse,
    SyncProver,
    VerifyProof,
)
from partita.scheduler.core.errors import JobUnknown, SessionUnknown
from partita.scheduler.core.events import (
    Event,
    JobRetried,
    JobSubmitted,
    Persisted,
    Restored,
    WaiterJoined,
    WaiterLeft,
)
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import BlobRef, JobState, Outcome
from partita.scheduler.core.records import JobAccepted, JobForgotten, JobRecord, Record
from partita.scheduler.identity import JobIds
from partita.scheduler.metrics import SchedulerMetrics
from partita.scheduler.sessions import Link, Sessions, events_of, lost_inputs
from partita.scheduler.store import Change, InputsDropped, Store
from partita.scheduler.verification import KeySource, Verification
from partita.scheduler.writer import Writer
from partita.service import logs
from partita.service.clock import Clock

EVENTS_A_TURN = 2000

_log = logs.get("engine")


class EngineStoppedError(Exception):
    """The engine has stopped; the caller should ask again elsewhere or later."""


class Engine:
    """Runs one core.

    Args:
        core: a fresh core.
        clock: the service's clock.
        store: an opened store.
        blobs: the blobs of the same data directory.
        keys: verifying keys by manifest digest.
        store_retry_ns: pause after a failed write.
        metrics: told what the core saw and decided.
        check: check the core's invariants after every turn.
    """

    def __init__(
        self,
        core: SchedulerCore,
        clock: Clock,
        store: Store,
        blobs: BlobStore,
        keys: KeySource,
        *,
        store_retry_ns: int,
        metrics: SchedulerMetrics,
        check: bool = False,
    ) -> None:
        self.core = core
        self.clock = clock
        self.blobs = blobs
        self.sessions = Sessions()
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.fleet_changed = Signal()
        self._check = check
        self._metrics = metrics
        self._writer = Writer(
            store,
            store_retry_ns,
            lambda n: self.post(Persisted(n)),
            metrics.committed,
            self._break,
        )
        self._verification = Verification(keys, self.post, metrics.checked)
        self._inbox: deque[Event | Link] = deque()
        self._scheduled = False
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._changes: list[Change] = []
        self._last_record: int | None = None
        self._dirty: dict[int, None] = {}
        self._ids = JobIds()
        self._last_number = 0
        self._callers: dict[int, asyncio.Future[Accept | Refuse]] = {}
        self._waiters: dict[int, asyncio.Future[None]] = {}
        self._signals: dict[str, Signal] = {}

    # Events

    def post(self, event: Event) -> None:
        """Put an event into the inbox; it is handled in this turn of the loop or the next."""
        self._inbox.append(event)
        self._schedule()

    def post_link(self, link: Link) -> None:
        """Let the core look into a link's mailbox."""
        if not link.queued:
            link.queued = True
            self._inbox.append(link)
            self._schedule()

    def run_now(self) -> None:
        """Handle everything in the inbox before going on; for callers that read the core next."""
        if not self._running and not self.broken.done():
            self._turn()

    def restore(self, restored: Restored) -> None:
        """Give the core what the store held; the first event."""
        for accepted in restored.jobs:
            job = accepted.job
            if job.state is not JobState.ENDED or job.outcome is not Outcome.COMPLETED:
                self.blobs.hold(job.job_id, [(p.input, p.inline) for p in accepted.partitions])
        self.post(restored)
        self.run_now()

    def _schedule(self) -> None:
        if not self._scheduled and not self.broken.done():
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self.broken.done():
            return
        self._running = True
        try:
            now_ns = self.clock.now_ns()
            for _ in range(min(len(self._inbox), EVENTS_A_TURN)):
                for event in self._events(self._inbox.popleft()):
                    effects = self.core.handle(event, now_ns)
                    self._metrics.seen(event, effects, now_ns)
                    self._perform(effects)
            if not self._inbox:
                effects = self.core.tick(now_ns)
                self._metrics.seen(None, effects, now_ns)
                self._perform(effects)
            if self._check:
                self.core.check()
            self._flush(now_ns)
        except Exception as error:  # noqa: BLE001 - a half-handled event must never be continued
            self._break(error)
        finally:
            self._running = False
        if self._inbox:
            self._schedule()

    def _events(self, item: Event | Link) -> list[Event]:
        if not isinstance(item, Link):
            return [item]
        hello, actual = item.take()
        missing: set[bytes] = set()
        for job_id, index in lost_inputs(actual) if actual is not None else ():
            try:
                found = self.core.partitions(job_id, after_index=index - 1, limit=1)
            except JobUnknown:
                continue
            missing.update(p.input.sha256 for p in found if not self.blobs.has(p.input.sha256))
        return events_of(item, hello, actual, frozenset(missing))

    def _break(self, error: BaseException) -> None:
        _log.critical("engine.broken", error=repr(error), exc_info=error)
        self.sessions.end_all()
        if not self.broken.done():
            self.broken.set_result(error)
        waiting: list[asyncio.Future[Any]] = [*self._callers.values(), *self._waiters.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(EngineStoppedError("the scheduler found a fault in itself"))

    # Effects

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    self._changes.append(effect.record)
                    self._last_record = effect.n
                    self._note(effect.record)
                case SyncProver():
                    self._dirty[effect.session] = None
                case VerifyProof():
                    self._verification.check(effect)
                case JobChanged():
                    signal = self._signals.get(effect.job_id)
                    if signal is not None:
                        signal.fire()
                case Accept() | Refuse():
                    self._answer(effect)
                case AnswerWaiter():
                    waiter = self._waiters.get(effect.waiter)
                    if waiter is not None and not waiter.done():
                        waiter.set_result(None)
                case CloseSession():
                    self.sessions.close(effect)
                case DropInputs():
                    self.blobs.drop(effect.job_id)
                    self._changes.append(InputsDropped(effect.job_id))

    def _note(self, record: Record) -> None:
        match record:
            case JobForgotten():
                self.blobs.drop(record.job_id)
            case JobAccepted():
                _log.info(
                    "job.accepted",
                    job_id=record.job.job_id,
                    circuit_id=record.job.circuit_id,
                    partitions=len(record.partitions),
                    priority=record.job.priority.name,
                )
            case JobRecord(outcome=Outcome() as outcome):
                _log.info(
                    "job.ended",
                    job_id=record.job_id,
                    outcome=outcome.name,
                    reason=record.failure.reason if record.failure else "",
                )

    def _answer(self, answer: Accept | Refuse) -> None:
        caller = self._callers.pop(answer.caller, None)
        if caller is not None and not caller.done():
            caller.set_result(answer)

    def _flush(self, now_ns: int) -> None:
        for number in self._dirty:
            link = self.sessions.links.get(number)
            if link is None:
                continue
            try:
                link.put(self.core.desired(number))
            except SessionUnknown:
                continue  # closed by the core in this turn; its stream is being ended
        self._dirty.clear()
        if self._changes:
            changes, self._changes = self._changes, []
            self._writer.put(changes, self._last_record)
            self._last_record = None
        self.fleet_changed.fire()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ns = self.core.next_deadline_ns()
        if deadline_ns is not None:
            delay_s = max(deadline_ns - now_ns, 0) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._turn)

    def expose(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return self._metrics.expose(
            self.core.census(),
            self.clock.now_ns(),
            store_failures=self._writer.failures,
            blob_bytes=self.blobs.stored_bytes,
            received_bytes=self.blobs.received_bytes,
        )

    @property
    def store_failures(self) -> int:
        """Transactions in a row that failed; 0 while the store works."""
        return self._writer.failures

    # What the API asks for

    async def submit(self, make: Callable[[str, int], JobSubmitted]) -> Accept | Refuse:
        """Hand in a job and wait until its acceptance is durable.

        The event is handled before this returns to the loop. Inputs are kept from now on, as long
        as the job that is made of them needs them.

        Args:
            make: builds the event from a new job_id and the number of this call.

        Raises:
            EngineStoppedError: the scheduler is broken.
        """
        self._refuse_if_broken()
        event = make(*self._new_job())
        return await self._hand_in(event, [(part.input, part.inline) for part in event.partitions])

    async def retry(self, job_id: str) -> Accept | Refuse:
        """Hand in a FAILED or CANCELLED job again; as `submit`.

        Raises:
            JobUnknown: there is no such job.
            BlobMissingError: inputs that are needed again are gone.
            EngineStoppedError: the scheduler is broken.
        """
        self._refuse_if_broken()
        self.run_now()
        inputs = self.core.inputs_to_retry(job_id)
        missing = [
            r.sha256 for r, kept in inputs if kept is None and not self.blobs.renew(r.sha256)
        ]
        if missing:
            raise BlobMissingError(missing)
        new_id, number = self._new_job()
        return await self._hand_in(JobRetried(new_id, job_id, number), inputs)

    def _new_job(self) -> tuple[str, int]:
        self._last_number += 1
        return self._ids.mint(self.clock.now_ns(), os.urandom(8)), self._last_number

    async def _hand_in(
        self, event: JobSubmitted | JobRetried, inputs: list[tuple[BlobRef, bytes | None]]
    ) -> Accept | Refuse:
        future: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: self._release(event.job_id, done))
        self._callers[event.caller] = future
        self.blobs.hold(event.job_id, inputs)
        self.post(event)
        self.run_now()
        return await asyncio.shield(future)

    def _release(self, job_id: str, answered: asyncio.Future[Accept | Refuse]) -> None:
        if answered.cancelled() or answered.exception() is not None:
            return
        answer = answered.result()
        if isinstance(answer, Refuse) or answer.job_id != job_id:
            self.blobs.drop(job_id)

    def _refuse_if_broken(self) -> None:
        if self.broken.done():
            raise EngineStoppedError("the scheduler found a fault in itself; it starts again")

    def join(self, job_id: str) -> tuple[int, asyncio.Future[None]]:
        """Wait for the end of a job: the future is done then. Always followed by `leave`.

        Raises:
            JobUnknown: there is no such job.
            EngineStoppedError: the scheduler is broken.
        """
        self._refuse_if_broken()
        self.run_now()
        self.core.must_know(job_id)
        self._last_number += 1
        number = self._last_number
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[number] = future
        self.post(WaiterJoined(job_id, number))
        return number, future

    def leave(self, job_id: str, number: int) -> None:
        """Take back a `join`."""
        self._waiters.pop(number, None)
        self.post(WaiterLeft(job_id, number))

    def watch(self, job_id: str) -> Signal:
        """Return the signal of a job's changes; always followed by `unwatch`."""
        signal = self._signals.setdefault(job_id, Signal())
        signal.users += 1
        return signal

    def unwatch(self, job_id: str) -> None:
        """Take back a `watch`."""
        signal = self._signals[job_id]
        signal.users -= 1
        if signal.users == 0:
            del self._signals[job_id]

    async def close(self, grace_s: float) -> bool:
        """Stop, saving what is unsaved within the grace; tell whether nothing is left."""
        self.run_now()
        if self._timer is not None:
            self._timer.cancel()
        await self._verification.close()
        return await self._writer.close(grace_s)


class Signal:
    """Wakes everybody who waits for the next change; missed changes are seen by a count."""

    def __init__(self) -> None:
        self.users = 0
        self.count = 0
        self._event = asyncio.Event()

    def fire(self) -> None:
        """Note a change."""
        self.count += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seen: int) -> None:
        """Return once `count` is beyond `seen`."""
        while self.count <= seen:
            await self._event.wait()
