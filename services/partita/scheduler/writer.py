"""Group commit: what one turn of the loop leaves to save is one transaction.

While a transaction runs in the writer's thread the next one gathers. A failure is retried with the
same changes until it succeeds, so a store that is away for a while loses nothing; the core refuses
submissions once too much is unsaved. Any other error than the store's own is a fault of ours:
nobody would ever be answered again, so it is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from partita.scheduler.store import Change, Store, StoreError
from partita.service import logs

_log = logs.get("store")


class Writer:
    """Writes changes in order.

    Args:
        store: an opened store; only its `apply` is called, in one thread.
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
        if self._waiting and self._worker is None:
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            last = self._last
            while True:
                began_ns = time.monotonic_ns()
                try:
                    await loop.run_in_executor(self._thread, self._store.apply, batch)
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
        self._thread.shutdown()
        return done
