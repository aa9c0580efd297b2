"""The composition root of the scheduler: builds the parts, starts them, stops them.

Order of a start: the right to the data directory, the store (a new epoch is durable before anybody
can connect), the core, the catalogue, the listeners. Order of a stop: no more submissions, watches
and streams end, running calls get their grace, what is unsaved is saved. Everything accepted is in
the store, so a stop loses nothing whenever it happens.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.scheduler.api.blobs import ClientBlobService, ProverBlobService
from partita.scheduler.api.dispatch import DispatchService
from partita.scheduler.api.fleet import FleetService, ProverFleetService
from partita.scheduler.api.proving import ProvingService
from partita.scheduler.blobs import BlobLimits, BlobStore
from partita.scheduler.catalogue import CatalogueWatcher
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.core.events import CatalogueChanged, ListenerOpened, Restored
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.engine import Engine
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import DataDirLock, Store
from partita.service import logs
from partita.service.clock import Clock
from partita.service.fingerprint import RunningBuild
from partita.service.grpcio import Server
from partita.v1 import blobs_pb2_grpc, dispatch_pb2_grpc, fleet_pb2_grpc, proving_pb2_grpc

EXIT_OK = 0
EXIT_BROKEN = 70
"""The core found a fault in itself; a supervisor should start the scheduler again."""

CLIENT_SERVICES = (
    "partita.v1.ProvingService",
    "partita.v1.BlobService",
    "partita.v1.FleetService",
)
PROVER_SERVICES = (
    "partita.v1.DispatchService",
    "partita.v1.BlobService",
    "partita.v1.FleetService",
)
_EXPIRE_INTERVAL_S = 10.0

_log = logs.get("scheduler")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The real addresses of a running scheduler."""

    client: str
    prover: str


class Scheduler:
    """A running scheduler. Made by `start`, ended by `stop`.

    Attributes:
        addresses: where it listens.
        engine: the owner of its core.
        epoch: of this start.
    """

    def __init__(self, config: SchedulerConfig, store: Store, lock: DataDirLock) -> None:
        self._config = config
        self._store = store
        self._lock = lock
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.addresses = Addresses("", "")

    @classmethod
    async def start(cls, config: SchedulerConfig, store: Store | None = None) -> Scheduler:
        """Start a scheduler.

        Args:
            config: its configuration.
            store: where state is kept; None = SQLite in the data directory.

        Raises:
            DataDirInUseError: another scheduler owns the data directory.
            StoreError, StoreUnreadableError: the store cannot be opened.
            AddressInUseError: another process has an address.
        """
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = DataDirLock(config.data_dir)
        scheduler = cls(config, store or SqliteStore(config.data_dir / "store.db"), lock)
        try:
            await scheduler._start()
        except BaseException:
            scheduler._store.close()
            lock.release()
            raise
        return scheduler

    async def _start(self) -> None:
        config = self._config
        restored = await asyncio.to_thread(self._store.open, int(time.time()))
        self.epoch = restored.epoch
        self._running = await asyncio.to_thread(RunningBuild, "native")
        self._build(restored)
        self.engine.restore(restored)
        await self._catalogue.refresh()
        self._blobs.expire()
        self.addresses = Addresses(
            self._clients.bind(config.listen), self._provers.bind(config.prover_listen)
        )
        await self._clients.start()
        await self._provers.start()
        self.engine.post(ListenerOpened())
        self.engine.run_now()
        self._catalogue.follow(config.catalogue_scan)
        self._tasks.add(asyncio.create_task(self._expire_blobs()))
        self._tasks.add(asyncio.create_task(self._running.watch(config.build_check / 1e9)))
        await self._clients.serving(True)
        await self._provers.serving(True)
        await asyncio.to_thread(_write_addresses, config.data_dir, self.addresses, self.epoch)
        _log.info(
            "scheduler.ready",
            epoch=self.epoch,
            clients=self.addresses.client,
            provers=self.addresses.prover,
            jobs=len(restored.jobs),
            build=self._running.fingerprint.as_object(),
        )

    def _build(self, restored: Restored) -> None:
        config = self._config
        self._blobs = BlobStore(
            config.data_dir / "blobs",
            BlobLimits(
                max_blob_bytes=config.max_blob,
                quota_bytes=config.blob_quota,
                max_uploads=config.max_uploads,
                max_waiting=config.max_waiting_uploads,
                ticket_ns=config.blob_ticket,
            ),
        )
        self._catalogue = CatalogueWatcher(config.data_dir / "circuits", self._catalogue_changed)
        self.engine = Engine(
            SchedulerCore(config.core()),
            Clock(restored.clock_mark_ns),
            self._store,
            self._blobs,
            self._catalogue.verifying_key,
            store_retry_ns=config.store_retry,
            check=config.check_invariants,
        )
        self._proving = ProvingService(
            self.engine,
            self._catalogue,
            epoch=self.epoch,
            build=self._running,
            max_blob_bytes=config.max_blob,
            allow_prover_statements=config.allow_prover_statements,
        )
        self._fleet = FleetService(self.engine, self._catalogue)
        self._dispatch = DispatchService(
            self.engine,
            self._catalogue,
            epoch=self.epoch,
            build=self._running,
            exact=config.fingerprint_gate == "exact",
            beat_ns=config.beat,
            stall_ns=config.stall,
        )
        self._clients = Server(CLIENT_SERVICES)
        self._provers = Server(PROVER_SERVICES)
        proving_pb2_grpc.add_ProvingServiceServicer_to_server(self._proving, self._clients.grpc)
        blobs_pb2_grpc.add_BlobServiceServicer_to_server(
            ClientBlobService(self._blobs, stall_ns=config.stall), self._clients.grpc
        )
        fleet_pb2_grpc.add_FleetServiceServicer_to_server(self._fleet, self._clients.grpc)
        dispatch_pb2_grpc.add_DispatchServiceServicer_to_server(self._dispatch, self._provers.grpc)
        blobs_pb2_grpc.add_BlobServiceServicer_to_server(
            ProverBlobService(self._blobs, self._catalogue), self._provers.grpc
        )
        fleet_pb2_grpc.add_FleetServiceServicer_to_server(
            ProverFleetService(self.engine, self._catalogue), self._provers.grpc
        )

    def _catalogue_changed(self, event: CatalogueChanged) -> None:
        self.engine.post(event)
        self.engine.run_now()

    async def _expire_blobs(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_INTERVAL_S)
            self._blobs.expire()

    async def stop(self) -> None:
        """Stop: refuse, let end, save, let go; idempotent."""
        if self._stopped:
            return
        self._stopped = True
        grace_s = self._config.stop_grace / 1e9
        _log.info("scheduler.stopping")
        await self._clients.serving(False)
        await self._provers.serving(False)
        self._proving.draining.set()
        self._fleet.draining.set()
        self._dispatch.draining = True
        self.engine.sessions.end_all()
        await asyncio.gather(self._clients.stop(grace_s), self._provers.stop(grace_s))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._catalogue.close()
        if not await self.engine.close(grace_s):
            _log.error("scheduler.unsaved", why="the store did not come back in time")
        self._blobs.close()
        await asyncio.to_thread(self._store.close)
        (self._config.data_dir / "run" / "scheduler.json").unlink(missing_ok=True)
        self._lock.release()
        _log.info("scheduler.stopped")


async def run(config: SchedulerConfig) -> int:
    """Run a scheduler until SIGTERM or SIGINT; return the process's exit code.

    Raises:
        What `Scheduler.start` raises.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await serve(await Scheduler.start(config), stopping)


async def serve(scheduler: Scheduler, stopping: asyncio.Event) -> int:
    """Let a scheduler work until `stopping` is set or it is broken, then stop it.

    Returns:
        The process's exit code: EXIT_OK or EXIT_BROKEN.
    """
    wait = asyncio.create_task(stopping.wait())
    try:
        ends: set[asyncio.Future[Any]] = {wait, scheduler.engine.broken}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        wait.cancel()
        await scheduler.stop()
    return EXIT_BROKEN if scheduler.engine.broken.done() else EXIT_OK


def _write_addresses(data_dir: Path, addresses: Addresses, epoch: int) -> None:
    folder = data_dir / "run"
    folder.mkdir(mode=0o700, exist_ok=True)
    temporary = folder / f"scheduler.json.{os.getpid()}.part"
    temporary.write_text(
        json.dumps(
            {
                "pid": os.getpid(),
                "epoch": epoch,
                "listen": addresses.client,
                "prover_listen": addresses.prover,
            }
        )
        + "\n"
    )
    temporary.rename(folder / "scheduler.json")
