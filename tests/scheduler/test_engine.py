"""The engine stops when its core is broken, and never goes on from a half-handled event."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from partita.scheduler.app import EXIT_BROKEN, EXIT_OK, Scheduler, serve
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.events import ModeSet, Restored
from partita.scheduler.core.model import Mode
from partita.scheduler.engine import EngineStoppedError, Signal
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import Change, Store
from partita.service.config import load
from partita.v1 import proving_pb2, proving_pb2_grpc
from tests.scheduler.peer import Prover
from tests.scheduler.running import LISTEN, refused, request_of, running

AGAIN = Restored(epoch=1)
"""An event that a running core must never see."""


class FaultyStore(SqliteStore):
    """A store with a fault of its own: not the disk's, so no StoreError."""

    def apply(self, changes: Sequence[Change]) -> bool:
        raise TypeError(f"{len(changes)} changes cannot be written")


async def started(data_dir: Path, store: Store | None = None) -> Scheduler:
    table = {"data_dir": data_dir, "stop_grace": "2s", **LISTEN}
    return await Scheduler.start(load(SchedulerConfig, table, "test"), store)


async def test_a_broken_core_ends_the_process_with_70_and_keeps_what_was_accepted(
    data_dir: Path, prover: Prover
) -> None:
    scheduler = await started(data_dir)
    serving = asyncio.create_task(serve(scheduler, asyncio.Event()))
    async with grpc.aio.insecure_channel(scheduler.addresses.client) as channel:
        stub = proving_pb2_grpc.ProvingServiceStub(channel)
        job_id = (await stub.SubmitJob(request_of([(2, 3)]))).job.job_id
        watch = stub.WatchJob(proving_pb2.WatchJobRequest(job_id=job_id))
        await watch.read()
        scheduler.engine.post(AGAIN)
        with refused(grpc.StatusCode.UNAVAILABLE, "DRAINING"):
            await watch.read()
    assert await serving == EXIT_BROKEN
    assert isinstance(scheduler.engine.broken.result(), CoreBug)
    async with running(data_dir, prover) as service:
        request = proving_pb2.ListJobsRequest()
        assert [job.job_id for job in (await service.proving.ListJobs(request)).jobs] == [job_id]


async def test_a_fault_of_the_store_ends_the_process_instead_of_keeping_callers_waiting(
    data_dir: Path, prover: Prover
) -> None:
    scheduler = await started(data_dir, FaultyStore(data_dir / "store.db"))
    serving = asyncio.create_task(serve(scheduler, asyncio.Event()))
    async with grpc.aio.insecure_channel(scheduler.addresses.client) as channel:
        stub = proving_pb2_grpc.ProvingServiceStub(channel)
        with refused(grpc.StatusCode.UNAVAILABLE, "DRAINING"):
            await stub.SubmitJob(request_of([(2, 3)]))
    assert await serving == EXIT_BROKEN
    assert isinstance(scheduler.engine.broken.result(), TypeError)


async def test_nothing_is_taken_once_the_core_is_broken(data_dir: Path) -> None:
    scheduler = await started(data_dir)
    scheduler.engine.post(AGAIN)
    scheduler.engine.run_now()
    state = scheduler.engine.core.digest()
    with pytest.raises(EngineStoppedError):
        scheduler.engine.join("any")
    scheduler.engine.post(ModeSet("gpu-0", Mode.CORDONED))
    scheduler.engine.run_now()
    assert scheduler.engine.core.digest() == state
    await scheduler.stop()


async def test_a_wish_to_stop_ends_with_zero(data_dir: Path) -> None:
    stopping = asyncio.Event()
    stopping.set()
    assert await serve(await started(data_dir), stopping) == EXIT_OK


async def test_a_signal_is_not_missed_between_two_waits() -> None:
    signal = Signal()
    seen = signal.count
    signal.fire()
    await signal.wait(seen)
    waiter = asyncio.ensure_future(signal.wait(signal.count))
    await asyncio.sleep(0)
    assert not waiter.done()
    signal.fire()
    await waiter
