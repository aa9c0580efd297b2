"""The cycle collector leaves the tables alone, and nothing that is forgotten waits for it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

from partita.scheduler import collector
from partita.scheduler.core.config import SECOND_NS
from partita.scheduler.core.tables import Job, Partition
from tests.scheduler.core.world import Peer, World

_GROW = """
import gc
from partita.scheduler import collector

collector.settle()
seen = [0, 0, 0]
def count(phase, info):
    if phase == "start":
        seen[info["generation"]] += 1
gc.callbacks.append(count)
tables = [[i] for i in range(50 * collector.YOUNG_OBJECTS)]
assert seen[0] > 10 and seen[1] > 1, seen
assert seen[2] == 0, seen
assert gc.get_freeze_count() > 0
"""


def test_growing_tables_start_no_full_collection() -> None:
    subprocess.run([sys.executable, "-c", _GROW], check=True)


async def test_everything_is_collected_once_an_interval() -> None:
    full = asyncio.Event()

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full.set()

    task = asyncio.create_task(collector.collect(0.001))
    gc.callbacks.append(look)
    try:
        async with asyncio.timeout(30):
            await full.wait()
    finally:
        gc.callbacks.remove(look)
        task.cancel()


def test_a_forgotten_job_leaves_no_cycle() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    peer.sync()
    world.submit("j", retain_ns=60 * SECOND_NS)
    peer.sync()
    peer.prove(peer.lease_of("j"))
    peer.sync()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        world.run(61)
        gc.collect()
        left = [found for found in gc.garbage if isinstance(found, Job | Partition)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not world.core.jobs()
    assert not left
