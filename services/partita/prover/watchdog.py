"""Ends the process when work on the device shows no progress.

A C timer (`faulthandler`) does the ending, because a hung native call may hold the interpreter
lock: it dumps all stacks and exits with code 1. A thread of ours looks at the progress counters
once a second and pushes the timer back while they move. The limit between two stamps is the
greatest of a floor, 20 times the longest gap that was ever followed by progress, and 3 times what
the whole work is expected to take.
"""

from __future__ import annotations

import faulthandler
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST_FACTOR = 20
_EXPECTED_FACTOR = 3


def stall_limit_ns(floor_ns: int, longest_ns: int, expected_ns: int) -> int:
    """Return how long the device may show no progress."""
    return max(floor_ns, _LONGEST_FACTOR * longest_ns, _EXPECTED_FACTOR * expected_ns)


class Watchdog:
    """Watches one piece of work at a time. There is one timer in a process.

    Args:
        counter: a number that rises while native work lives.
        floor_ns: the least stall that ends the process.
        poll_s: how often the counters are looked at.
    """

    def __init__(
        self, counter: Callable[[], int], *, floor_ns: int = 60 * 10**9, poll_s: float = 1.0
    ) -> None:
        self._counter = counter
        self._floor_ns = floor_ns
        self._poll_s = poll_s
        self._stamps = 0
        self._longest_ns = 0

    @property
    def longest_ns(self) -> int:
        """The longest gap between two stamps so far."""
        return self._longest_ns

    def stamp(self) -> None:
        """Say that the work has reached another stage."""
        self._stamps += 1

    @contextmanager
    def watching(self, expected_ns: int) -> Iterator[None]:
        """Watch the body, which is expected to take so long."""
        over = threading.Event()
        self._arm(expected_ns)
        watcher = threading.Thread(
            target=self._watch, args=(expected_ns, over), name="watchdog", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            faulthandler.cancel_dump_traceback_later()

    def _watch(self, expected_ns: int, over: threading.Event) -> None:
        seen = self._progress()
        seen_ns = time.monotonic_ns()
        while not over.wait(self._poll_s):
            now = self._progress()
            if now != seen:
                now_ns = time.monotonic_ns()
                self._longest_ns = max(self._longest_ns, now_ns - seen_ns)
                seen, seen_ns = now, now_ns
                self._arm(expected_ns)

    def _progress(self) -> tuple[int, int]:
        return self._counter(), self._stamps

    def _arm(self, expected_ns: int) -> None:
        limit_ns = stall_limit_ns(self._floor_ns, self._longest_ns, expected_ns)
        faulthandler.dump_traceback_later(limit_ns / 1e9, exit=True)
