"""The composition root of the scheduler: builds the parts, starts them, stops them.

Ready means: submissions and streams are taken. Alive means: starting again would not help. Both are
asked over gRPC health and HTTP.

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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.scheduler import collector
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
from partita.scheduler.metrics import SchedulerMetrics
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import DataDirLock, Store
from partita.service import logs
from partita.service.clock import Clock
from partita.service.fingerprint import RunningBuild
from partita.service.grpcio import Server
from partita.service.paths import DataDirUnusableError
from partita.service.probes import ProbeServer, pulse
from partita.v1 import blobs_pb2_grpc, dispatch_pb2_grpc, fleet_pb2_grpc, proving_pb2_grpc

EXIT_OK = 0
EXIT_BROKEN = 70
"""The core found a fault in itself; a supervisor should start the scheduler again."""
EXIT_TOLD_TWICE = 128 + signal.SIGTERM
"""A second signal: everything accepted is in the store, so nothing is lost."""

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
_COLLECT_INTERVAL_S = 900.0
_PULSE_S = 0.5

_log = logs.get("scheduler")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The real addresses of a running scheduler."""

    client: str
    prover: str
    metrics: str = ""


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
        self._servers: tuple[Server, ...] = ()
        self._probes: ProbeServer | None = None
        self._shown = (True, True)
        """Whether health probes were told that it is ready, and alive."""
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
            DataDirUnusableError: the data directory cannot be written or read.
            AddressInUseError: another process has an address.
        """
        try:
            config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = DataDirLock(config.data_dir)
            scheduler = cls(config, store or SqliteStore(config.data_dir / "store.db"), lock)
            try:
                await scheduler._start()
            except BaseException:
                await scheduler._give_up()
                raise
        except OSError as error:
            raise DataDirUnusableError(config.data_dir, error) from error
        return scheduler

    async def _give_up(self) -> None:
        """Let go of what a start that failed has taken."""
        for server in self._servers:
            await server.stop(0)
        if self._probes is not None:
            await self._probes.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._servers:
            await self.engine.close(0)
            self._blobs.close()
        self._store.close()
        self._lock.release()

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
            self._clients.bind(config.listen),
            self._provers.bind(config.prover_listen),
            self._probes.bind(config.metrics_listen) if self._probes is not None else "",
        )
        await self._clients.start()
        await self._provers.start()
        self.engine.post(ListenerOpened())
        self.engine.run_now()
        self._catalogue.follow(config.catalogue_scan)
        self._tasks.add(asyncio.create_task(self._expire_blobs()))
        self._tasks.add(asyncio.create_task(self._running.watch(config.build_check / 1e9)))
        for server in self._servers:
            await server.serving(True)
        if self._probes is not None:
            self._probes.start()
        self._tasks.add(asyncio.create_task(pulse(_PULSE_S, self._beat)))
        await asyncio.to_thread(_write_addresses, config.data_dir, self.addresses, self.epoch)
        _log.info(
            "scheduler.ready",
            epoch=self.epoch,
            clients=self.addresses.client,
            provers=self.addresses.prover,
            metrics=self.addresses.metrics,
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
        self._metrics = SchedulerMetrics(self._running.fingerprint)
        self.engine = Engine(
            SchedulerCore(config.core()),
            Clock(restored.clock_mark_ns),
            self._store,
            self._blobs,
            self._catalogue.verifying_key,
            store_retry_ns=config.store_retry,
            metrics=self._metrics,
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
        self._servers = (self._clients, self._provers)
        if config.metrics_listen:
            self._probes = ProbeServer(self.engine.expose, self.why_not_alive, self.why_not_ready)
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

    def why_not_alive(self) -> list[str]:
        """Return why the process should be started again; nothing = leave it alone."""
        broken = self.engine.broken
        return [f"the core is broken: {broken.result()!r}"] if broken.done() else []

    def why_not_ready(self) -> list[str]:
        """Return why submissions are not taken; nothing = they are."""
        reasons = self.why_not_alive()
        if self._stopped:
            reasons.append("the scheduler stops")
        unsaved, most = self.engine.core.unsaved_records, self._config.max_unsaved_records
        if unsaved >= most:
            failures = self.engine.store_failures
            reasons.append(
                f"the store is behind: {unsaved} records are not saved, at most {most} may be; "
                f"{failures} writes in a row failed"
            )
        return reasons

    def _beat(self, late_s: float) -> None:
        self._metrics.late(late_s)
        health = (not self.why_not_ready(), not self.why_not_alive())
        if health != self._shown:
            self._shown = health
            task = asyncio.create_task(self._show_health(*health))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show_health(self, ready: bool, alive: bool) -> None:
        for server in self._servers:
            await server.serving(ready)
            await server.alive(alive)

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
        for server in self._servers:
            await server.serving(False)
        self._proving.draining.set()
        self._fleet.draining.set()
        self._dispatch.draining = True
        self.engine.sessions.end_all()
        await asyncio.gather(self._clients.stop(grace_s), self._provers.stop(grace_s))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._catalogue.close()
        if self._probes is not None:
            await self._probes.stop()
        if not await self.engine.close(grace_s):
            _log.error("scheduler.unsaved", why="the store did not come back in time")
        self._blobs.close()
        await asyncio.to_thread(self._store.close)
        (self._config.data_dir / "run" / "scheduler.json").unlink(missing_ok=True)
        self._lock.release()
        _log.info("scheduler.stopped")


async def run(config: SchedulerConfig, ready: Callable[[Addresses], None]) -> int:
    """Run a scheduler until SIGTERM or SIGINT; return the process's exit code.

    A second signal ends the process at once.

    Args:
        config: its configuration.
        ready: told where it listens, once it takes submissions.

    Raises:
        What `Scheduler.start` raises.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        if stopping.is_set():
            _log.warning("scheduler.told_twice")
            os._exit(EXIT_TOLD_TWICE)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    scheduler = await Scheduler.start(config)
    collector.settle()
    collecting = asyncio.create_task(collector.collect(_COLLECT_INTERVAL_S))
    try:
        ready(scheduler.addresses)
        return await serve(scheduler, stopping)
    finally:
        collecting.cancel()


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
                "metrics_listen": addresses.metrics,
            }
        )
        + "\n"
    )
    temporary.rename(folder / "scheduler.json")
