"""When Python's cycle collector may walk the scheduler's tables.

The tables hold hundreds of thousands of objects that live for hours, and nothing in them is a cycle
once it is forgotten. A full collection walks all of them, for a tenth of a second and more, and by
itself it comes in the midst of the load that makes the tables grow. So what the start built is
never walked again, young objects are collected as always, in larger portions, and a full collection
has a time of its own. (Python's `gc` module: `freeze`, `set_threshold`.)
"""

from __future__ import annotations

import asyncio
import gc

YOUNG_OBJECTS = 10_000
"""New objects that start a collection of the youngest."""

_YOUNG_ROUNDS = 10
_NEVER = 1_000_000


def settle() -> None:
    """Set the collector up for a process whose tables are restored; for the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, _YOUNG_ROUNDS, _NEVER)


async def collect(interval_s: float) -> None:
    """Collect everything each interval, until cancelled."""
    while True:
        await asyncio.sleep(interval_s)
        gc.collect()
