"""Owns the core on the event loop: events in, effects out, one timer for its deadlines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from partita.prover.core import effects as fx
from partita.prover.core.model import EXIT_FAULTED, CoreBug
from partita.service import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.prover.core.events import Event
    from partita.prover.core.model import Actual
    from partita.prover.core.pipeline import PipelineCore

    Seen = Callable[[Event | None, list[fx.Effect], int], None]

_log = logs.get("engine")


class Engine:
    """The only caller of the core.

    Args:
        core: the core.
        now_ns: the process's clock.
        check: check the core's invariants after every step.
        seen: told each event (None: a tick), what followed from it, and when.

    Attributes:
        exited: completed with the exit code when the core wants the process to end.
    """

    def __init__(
        self,
        core: PipelineCore,
        now_ns: Callable[[], int],
        *,
        check: bool = False,
        seen: Seen | None = None,
    ) -> None:
        self._core = core
        self._now_ns = now_ns
        self._check = check
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._execute: Callable[[fx.Effect], None] | None = None
        self._send: Callable[[bool], None] | None = None
        self.exited: asyncio.Future[int] = self._loop.create_future()

    def connect(
        self, execute: Callable[[fx.Effect], None], send_actual: Callable[[bool], None]
    ) -> None:
        """Say who executes effects and who sends Actuals; before the first event."""
        self._execute, self._send = execute, send_actual

    def actual(self) -> Actual:
        """Return what is held."""
        return self._core.actual()

    def post(self, event: Event) -> None:
        """Handle an event; on the event loop."""
        self._step(event)

    def post_from_thread(self, event: Event) -> None:
        """Have an event handled; from any thread. Nothing happens once the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.post, event)

    def _tick(self) -> None:
        self._timer = None
        self._step(None)

    def _step(self, event: Event | None) -> None:
        if self.exited.done():  # what still runs is being cut off, in no order
            return
        try:
            now_ns = self._now_ns()
            core = self._core
            effects = core.tick(now_ns) if event is None else core.handle(event, now_ns)
            if self._check:
                self._core.check()
        except CoreBug:
            _log.critical("engine.core_bug", exc_info=True)
            self.end(EXIT_FAULTED)
            return
        if self._seen is not None:
            self._seen(event, effects, now_ns)
        for effect in effects:
            self._perform(effect)
        self._set_timer()

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.SendActual(urgent):
                if self._send is not None:
                    self._send(urgent)
            case fx.Exit(code):
                self.end(code)
            case _:
                if self._execute is not None:
                    self._execute(effect)

    def end(self, code: int) -> None:
        """End with this code unless another one was first."""
        if not self.exited.done():
            self.exited.set_result(code)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ns = self._core.next_deadline_ns()
        if deadline_ns is not None:
            delay_s = max(0, deadline_ns - self._now_ns()) / 1e9
            self._timer = self._loop.call_later(delay_s, self._tick)
