"""The one clock of a program: wall time read once at boot, monotonic since.

A step of the wall clock while the program runs changes nothing, and after a restart time never
goes back: the clock starts at the persisted high-water mark if the wall clock is behind it.
"""

from __future__ import annotations

import time


class Clock:
    """Nanoseconds since the Unix epoch that only ever grow.

    Args:
        not_before_ns: the persisted high-water mark; the clock starts no earlier.
    """

    def __init__(self, not_before_ns: int = 0) -> None:
        self._offset_ns = max(time.time_ns(), not_before_ns) - time.monotonic_ns()

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the Unix epoch."""
        return time.monotonic_ns() + self._offset_ns
