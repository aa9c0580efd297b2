"""Threads that run calls in order, for stages that compute.

They are daemons: a process that must end does not wait for a call in native code.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Workers:
    """A few threads with one queue.

    Args:
        name: of the threads.
        count: how many; with one, calls run one after the other.
    """

    def __init__(self, name: str, count: int = 1) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{n}", daemon=True)
            for n in range(count)
        ]
        self._lock = threading.Lock()
        self._running = 0
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return self._running > 0

    def submit(self, call: Callable[[], None]) -> None:
        """Run `call`, which raises nothing, when a thread is free."""
        self._calls.put(call)

    def close(self) -> None:
        """Let the threads end after what is queued; does not wait."""
        for _ in self._threads:
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            with self._lock:
                self._running += 1
            call()
            with self._lock:
                self._running -= 1
            del call
