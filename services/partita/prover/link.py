"""The prover's end of DispatchService.Work: one stream to one scheduler at a time.

Sends are mailboxes of one: the newest Hello and the newest Actual are made when they are
written, Hello first; nothing queues, whatever the peer does. An Actual goes at once on an
outcome or a phase change, otherwise at most 20 a second, and on every beat. When the stream ends
the next address is tried after a back-off with full jitter.

The core hears LinkUp with the Welcome, so a port that merely accepts connections is no
scheduler. Until then exactly Hello and one Actual with `applied` = 0 are sent: a write that meets
the end of the stream would hide why the scheduler ended it.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import grpc

from partita.prover import translate
from partita.prover.core import events as ev
from partita.service import grpcio, logs
from partita.v1 import dispatch_pb2, dispatch_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from partita.prover.core.model import Actual

CONTRACT = 1
_CLOSE_S = 1.0
_log = logs.get("link")

_Call = grpc.aio.StreamStreamCall[dispatch_pb2.WorkRequest, dispatch_pb2.WorkResponse]


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """How the link connects; times in seconds.

    Attributes:
        addresses: schedulers, tried in turn.
        backoff_min_s: the least wait before another try.
        backoff_busy_s: the most while leases are held.
        backoff_idle_s: the most otherwise.
        beat_s: how often an Actual goes until a Welcome says otherwise.
        coalesce_s: the least time between Actuals that are not urgent.
    """

    addresses: Sequence[str]
    backoff_min_s: float = 0.5
    backoff_busy_s: float = 10.0
    backoff_idle_s: float = 30.0
    beat_s: float = 5.0
    coalesce_s: float = 0.05


class _LowerEpochError(Exception):
    """The scheduler is older than one this prover has seen."""


class Link:
    """Keeps one session with a scheduler.

    Args:
        config: addresses and times.
        hello: makes the newest Hello; `highest_epoch` and the contract are filled in here.
        actual: makes the newest Actual.
        measured: returns the memory of this process in bytes, shown only.
        post: takes events for the core.
        catalogue: told the scheduler's catalogue revision with every Welcome and Desired.
    """

    def __init__(
        self,
        config: LinkConfig,
        *,
        hello: Callable[[], dispatch_pb2.Hello],
        actual: Callable[[], Actual],
        measured: Callable[[], int],
        post: Callable[[ev.Event], None],
        catalogue: Callable[[bytes], None],
    ) -> None:
        self._config = config
        self._hello = hello
        self._actual = actual
        self._measured = measured
        self._post = post
        self._catalogue = catalogue
        self._highest_epoch = 0
        self._beat_s = config.beat_s
        self._failures = 0
        self._up = False
        self._hello_due = False
        self._actual_due = False
        self._urgent = False
        self._wake = asyncio.Event()
        self._linked = asyncio.Event()
        self._closing = asyncio.Event()
        self._channel: grpc.aio.Channel | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """The scheduler that is connected, "" if none is."""
        return self._address if self._up else ""

    async def channel(self) -> grpc.aio.Channel:
        """Wait for a session and return its channel, for calls beside the stream."""
        while self._channel is None or not self._up:
            await self._linked.wait()
        return self._channel

    def send_hello(self) -> None:
        """The offers changed: send Hello again."""
        self._hello_due = True
        self._wake.set()

    def send_actual(self, *, urgent: bool) -> None:
        """The view changed: send an Actual, at once if it is urgent."""
        self._actual_due = True
        self._urgent = self._urgent or urgent
        self._wake.set()

    def close(self) -> None:
        """Send the newest Actual if it is due, half-close, and let `run` return."""
        self._closing.set()
        self._wake.set()

    async def run(self) -> None:
        """Connect, and connect again, until `close`."""
        turn = 0
        while not self._closing.is_set():
            address = self._config.addresses[turn % len(self._config.addresses)]
            turn += 1
            await self._session(address)
            if self._closing.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff_s()):
                    await self._closing.wait()

    def _backoff_s(self) -> float:
        config = self._config
        cap = config.backoff_busy_s if self._actual().leases else config.backoff_idle_s
        self._failures += 1
        most = min(cap, config.backoff_min_s * 2 ** min(self._failures, 20))
        return random.uniform(config.backoff_min_s, max(config.backoff_min_s, most))

    async def _session(self, address: str) -> None:
        async with grpc.aio.insecure_channel(address, options=grpcio.channel_options()) as channel:
            self._channel, self._address = channel, address
            stub = dispatch_pb2_grpc.DispatchServiceStub(channel)
            call: _Call = stub.Work()
            self._hello_due = self._actual_due = self._urgent = True
            writer = asyncio.create_task(self._write(call), name="link-writer")
            reader = asyncio.create_task(self._read(call), name="link-reader")
            try:
                await asyncio.wait({writer, reader}, return_when=asyncio.FIRST_COMPLETED)
                if self._closing.is_set():
                    await asyncio.wait({reader}, timeout=_CLOSE_S)
            finally:
                call.cancel()
                for task in (writer, reader):
                    task.cancel()
                ends = await asyncio.gather(writer, reader, return_exceptions=True)
                self._report(address, ends)
                self._channel = None
                self._linked.clear()
                if self._up:
                    self._up = False
                    self._post(ev.LinkDown())

    def _report(self, address: str, ends: Sequence[BaseException | None]) -> None:
        if self._closing.is_set():
            return
        for error in ends:
            if isinstance(error, grpc.aio.AioRpcError):
                fatal = error.code() in (
                    grpc.StatusCode.FAILED_PRECONDITION,
                    grpc.StatusCode.INVALID_ARGUMENT,
                    grpc.StatusCode.UNIMPLEMENTED,
                )
                tell = _log.error if fatal else _log.warning
                tell(
                    "link.lost",
                    scheduler=address,
                    code=error.code().name,
                    reason=grpcio.reason_of(error),
                    detail=error.details(),
                )
                return
        for error in ends:
            if isinstance(error, _LowerEpochError):
                _log.warning("link.stale_scheduler", scheduler=address, detail=str(error))
                return
            if isinstance(error, Exception):
                _log.error("link.broke", scheduler=address, exc_info=error)
                return
        _log.info("link.ended", scheduler=address)

    async def _write(self, call: _Call) -> None:
        clock = asyncio.get_running_loop().time
        coalesce_s = self._config.coalesce_s
        sent_at = clock() - coalesce_s
        greeted = False
        while True:
            if greeted and not self._up:
                if self._closing.is_set():
                    await call.done_writing()
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            due_at = sent_at + (
                (0.0 if self._urgent else coalesce_s) if self._actual_due else self._beat_s
            )
            if not self._hello_due and clock() < due_at:
                if self._closing.is_set() and not self._actual_due:
                    await call.done_writing()
                    return
                self._wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(due_at - clock()):
                        await self._wake.wait()
                continue
            if self._hello_due:
                self._hello_due = False
                await call.write(dispatch_pb2.WorkRequest(hello=self._newest_hello()))
                continue
            self._actual_due = self._urgent = False
            sent_at = clock()
            await call.write(dispatch_pb2.WorkRequest(actual=self._newest_actual()))
            greeted = True

    def _newest_hello(self) -> dispatch_pb2.Hello:
        hello = self._hello()
        hello.contract_min = hello.contract_max = CONTRACT
        hello.highest_epoch = self._highest_epoch
        return hello

    def _newest_actual(self) -> dispatch_pb2.Actual:
        actual = self._actual()
        if not self._up:
            actual = replace(actual, applied=0)
        return translate.actual_message(actual, self._measured())

    async def _read(self, call: _Call) -> None:
        async for response in call:
            match response.WhichOneof("message"):
                case "welcome":
                    self._welcomed(response.welcome)
                case "desired" if self._up:
                    self._check_epoch(response.desired.epoch)
                    self._post(ev.DesiredReceived(translate.desired(response.desired)))
                    self._catalogue(response.desired.catalogue_revision)

    def _welcomed(self, welcome: dispatch_pb2.Welcome) -> None:
        self._check_epoch(welcome.epoch)
        self._beat_s = translate.duration_ns(welcome.beat) / 1e9 or self._config.beat_s
        self._failures = 0
        if not self._up:
            self._up = True
            self._linked.set()
            self._wake.set()
            _log.info("link.up", scheduler=self._address, epoch=welcome.epoch)
            self._post(ev.LinkUp())
        self._catalogue(welcome.catalogue_revision)

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self._highest_epoch:
            raise _LowerEpochError(
                f"its epoch {epoch} is below {self._highest_epoch}, which this prover has seen"
            )
        self._highest_epoch = epoch
