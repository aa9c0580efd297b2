"""The engine: one owner of the core, deadlines on one timer, a bug ends the process."""

from __future__ import annotations

import asyncio
import threading

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import Bytes, CoreConfig, Desired
from partita.prover.core.pipeline import PipelineCore
from partita.prover.engine import Engine
from partita.service.clock import Clock
from tests.prover.core.driving import GIB, order
from tests.prover.peer import TIMEOUT_S


def engine_of(**limits: int) -> Engine:
    return Engine(PipelineCore(CoreConfig(total=Bytes(100 * GIB), **limits)), Clock().now_ns)


async def ended(engine: Engine) -> int:
    async with asyncio.timeout(TIMEOUT_S):
        return await engine.exited


async def test_a_bug_of_the_core_ends_the_process_as_a_fault() -> None:
    engine = engine_of()
    engine.post(ev.LeaseFreed("nobody's"))
    assert await ended(engine) == 70


async def test_an_event_from_a_thread_reaches_the_core() -> None:
    engine = engine_of()
    thread = threading.Thread(target=engine.post_from_thread, args=(ev.Stopping(),))
    thread.start()
    assert await ended(engine) == 0
    thread.join()


async def test_the_timer_runs_the_core_s_deadlines() -> None:
    effects: list[fx.Effect] = []
    engine = engine_of(fault_grace_ns=10**6)
    engine.connect(effects.append, lambda urgent: None)
    engine.post(ev.LinkUp())
    engine.post(ev.DesiredReceived(Desired(epoch=1, revision=1, leases=(order("1.1"),))))
    engine.post(ev.Faulted("illegal address"))
    assert effects[-1] == fx.StopStage("1.1")  # which nobody answers
    assert await ended(engine) == 70


async def test_after_the_end_events_change_nothing() -> None:
    engine = engine_of()
    engine.post(ev.Stopping())
    assert await ended(engine) == 0
    engine.post(ev.LeaseFreed("nobody's"))
    assert await ended(engine) == 0
