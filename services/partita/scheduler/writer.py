"""Group commit: what one turn of the loop leaves to save is one transaction.

While a transaction runs in the writer's thread the next one gathers. A failure is retried with the
same changes until it succeeds, so a store that is away for a while loses nothing; the core refuses
submissions once too much is unsaved. Any other error than the store's own is a fault of ours:
nobody would ever be answered again, so it is told.

What was deleted is scrubbed a little later, for many batches at once: a scrub costs more than a
batch, and whoever waits for the next one would pay for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from partita.scheduler.store import Change, Store, StoreError
from partita.service import logs

SCRUB_AFTER_S = 5.0
"""How long a trace of deleted inputs may stay; the end of the store leaves none."""

_log = logs.get("store")


class Writer:
    """Writes changes in order.

    Args:
        store: an opened store; only `apply` and `scrub` are called, in one thread.
        retry_ns: the pause after a failure.
        durable: told the number of the last record of each transaction, on the loop's thread.
        committed: told how long each transaction that became durable took, in nanoseconds.
        broken: told an error that is not the store's own; nothing is saved after it.
    """

    def __init__(
        self,
        store: Store,
        retry_ns: int,
        durable: Callable[[int], None],
        committed: Callable[[int], None],
        broken: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._retry_s = retry_ns / 1e9
        self._durable = durable
        self._committed = committed
        self._broken = broken
        self._waiting: list[Change] = []
        self._last = 0
        self._told = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._worker: asyncio.Task[None] | None = None
        self._scrubs: asyncio.TimerHandle | None = None
        self._scrub_is_due = False
        self.failures = 0
        """Transactions in a row that failed; 0 while the store works."""

    def put(self, changes: Sequence[Change], last: int | None) -> None:
        """Take changes to save.

        Args:
            changes: in order.
            last: the number of the last core record among them, None if there is none.
        """
        self._waiting.extend(changes)
        if last is not None:
            self._last = last
        self._go_on()

    def _go_on(self) -> None:
        if (self._waiting or self._scrub_is_due) and self._worker is None:
            self._worker = asyncio.create_task(self._work())

    def _scrub_soon(self) -> None:
        if self._scrubs is None:
            loop = asyncio.get_running_loop()
            self._scrubs = loop.call_later(SCRUB_AFTER_S, self._time_to_scrub)

    def _time_to_scrub(self) -> None:
        self._scrubs = None
        self._scrub_is_due = True
        self._go_on()

    async def _scrub(self) -> bool:
        """Tell whether the work may go on."""
        self._scrub_is_due = False
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.scrub)
        except StoreError as error:
            _log.warning("store.unscrubbed", error=str(error))
            self._scrub_soon()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be told
            self._broken(error)
            return False
        return True

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or self._scrub_is_due:
            if self._scrub_is_due and not await self._scrub():
                return
            batch, self._waiting = self._waiting, []
            last = self._last
            while batch:
                began_ns = time.monotonic_ns()
                try:
                    if await loop.run_in_executor(self._thread, self._store.apply, batch):
                        self._scrub_soon()
                    self._committed(time.monotonic_ns() - began_ns)
                    break
                except StoreError as error:
                    self.failures += 1
                    _log.error("store.failed", error=str(error), unsaved=len(batch))
                    await asyncio.sleep(self._retry_s)
                except Exception as error:  # noqa: BLE001 - whatever it is, it must be told
                    self._broken(error)
                    return
            if self.failures:
                _log.info("store.recovered", failures=self.failures)
                self.failures = 0
            if last > self._told:
                self._told = last
                self._durable(last)
        self._worker = None

    async def close(self, grace_s: float) -> bool:
        """Save what waits, for at most `grace_s`; tell whether nothing is left."""
        worker = self._worker
        done = True
        if worker is not None:
            finished, _ = await asyncio.wait({worker}, timeout=grace_s)
            done = bool(finished)
            if not done:
                worker.cancel()
                await asyncio.wait({worker})
        if self._scrubs is not None:
            self._scrubs.cancel()
        self._thread.shutdown()
        return done
