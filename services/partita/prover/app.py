"""Puts a prover together, runs it until it shall end, and takes it apart.

Exit codes: 0 drained, 70 a fault of the device or of the program (a supervisor restarts it),
143 told to stop a second time.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from partita.circuits.packed import PackedKeys
from partita.groth16.selftest import KnownAnswers
from partita.prover import memory, translate
from partita.prover.circuits import Circuits
from partita.prover.core import events as ev
from partita.prover.core.model import Bytes, Condition, CoreConfig
from partita.prover.core.pipeline import PipelineCore
from partita.prover.engine import Engine
from partita.prover.link import CONTRACT, Link, LinkConfig
from partita.prover.metrics import ProverMetrics
from partita.prover.offers import OfferRules
from partita.prover.runner import Runner
from partita.prover.server import ProverServicer, make_server
from partita.prover.watchdog import Watchdog
from partita.service import logs
from partita.service.clock import Clock
from partita.service.fingerprint import RunningBuild
from partita.service.paths import DataDirUnusableError
from partita.service.probes import ProbeServer, pulse
from partita.service.sizes import format_size, memory_limit_bytes
from partita.v1 import dispatch_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from partita.groth16.backend import Backend
    from partita.groth16.selftest import Step
    from partita.prover.config import ProverConfig

EXIT_TOLD_TWICE = 128 + signal.SIGTERM
_LINK_CLOSE_S = 3.0
_PULSE_S = 0.5
_log = logs.get("prover")


def main(
    config: ProverConfig,
    wrap: Callable[[Backend], Backend] | None = None,
    ready: Callable[[str], None] | None = None,
) -> int:
    """Run a prover in this process and return its exit code.

    Args:
        config: its configuration.
        wrap: put around the backend, to observe or disturb what it computes.
        ready: told its own address once it is served.
    """
    code = asyncio.run(run(config, wrap, ready))
    _log.info("prover.ended", code=code)
    return code


async def run(
    config: ProverConfig,
    wrap: Callable[[Backend], Backend] | None = None,
    ready: Callable[[str], None] | None = None,
) -> int:
    """Run a prover until it shall end; returns the exit code. The arguments are those of `main`.

    Raises:
        AddressInUseError: an address of the prover is taken.
        DataDirUnusableError: the data directory cannot be written.
    """
    memory.return_freed_blocks()
    if config.limit_data:
        memory.limit_data_bytes(config.total_bytes + config.memory_margin)
    backend, watchdog = _make_backend(config)
    prover = Prover(config, wrap(backend) if wrap else backend, watchdog)
    _catch_signals(prover)
    code = await prover.run(ready)
    if prover.computes:
        _log.info("prover.ended", code=code, unfinished=True)
        # A native call that returns into a dying interpreter would abort the process.
        os._exit(code)
    return code


class Prover:
    """The parts of a prover and how they hold together; make it on a running event loop.

    Args:
        config: its configuration.
        backend: computes.
        watchdog: watches the device thread; None for a backend that shows no progress.
    """

    def __init__(
        self, config: ProverConfig, backend: Backend, watchdog: Watchdog | None = None
    ) -> None:
        self._config = config
        self._instance_id = uuid.uuid4().hex
        self._build = RunningBuild(backend.name)
        core = PipelineCore(
            CoreConfig(
                total=Bytes(config.total_bytes),
                synthesis_threads=config.synthesis_threads,
                grace_ns=config.drain_grace,
                fault_grace_ns=config.fault_grace,
                orphan_ttl_ns=config.orphan_ttl,
            )
        )
        self._metrics = ProverMetrics(self._build.fingerprint)
        self._engine = Engine(
            core, Clock().now_ns, check=config.check_invariants, seen=self._metrics.seen
        )
        self._link = Link(
            LinkConfig(
                addresses=config.schedulers,
                backoff_min_s=config.backoff / 1e9,
                backoff_busy_s=config.backoff_busy / 1e9,
                backoff_idle_s=config.backoff_idle / 1e9,
            ),
            hello=self._hello,
            actual=self._engine.actual,
            measured=memory.resident_bytes,
            post=self._from_link,
            catalogue=self._catalogue_changed,
        )
        self._circuits = Circuits(
            config.data_dir / "circuits",
            PackedKeys(config.data_dir / "packed", config.packed_quota),
            OfferRules(backend.name, config.n_cores, config.check_rows_below),
            KnownAnswers(backend),
            channel=self._link.channel,
            changed=self._offers_changed,
        )
        self._runner = Runner(
            backend,
            self._circuits,
            channel=self._link.channel,
            post=self._engine.post_from_thread,
            synthesis_threads=config.synthesis_threads,
            watchdog=watchdog,
            build=self._build.fingerprint.short(),
        )
        self._engine.connect(self._runner.execute, self._view_changed)
        self._watchdog = watchdog
        self._ready = False
        self._probes = None
        if config.metrics_listen:
            self._probes = ProbeServer(self._expose, list, self.why_not_ready)
        self._telling: set[asyncio.Task[None]] = set()
        self._server = make_server(
            ProverServicer(
                self._hello, self._actual_message, lambda: self._link.address, self.self_test
            )
        )

    @property
    def computes(self) -> bool:
        """Whether a thread still runs a call."""
        return self._runner.computes

    async def self_test(self, circuit_id: str) -> AsyncIterator[Step]:
        """Test the backend and a circuit's key if it is in memory; yields each step.

        Raises:
            LookupError: there is no usable circuit of that name here.
        """
        circuit = self._circuits.named(circuit_id)
        if circuit is None or circuit.manifest is None:
            why = "not known here" if circuit is None else circuit.offer.unusable_reason
            raise LookupError(f"circuit_id: {circuit_id[:64]!r}: {why}")
        loop = asyncio.get_running_loop()
        steps: asyncio.Queue[Step | None] = asyncio.Queue()

        def tell(step: Step | None) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(steps.put_nowait, step)

        self._runner.self_test(circuit, tell)
        while (step := await steps.get()) is not None:
            yield step

    def stop(self, reason: str) -> None:
        """Finish or hand back what is held within the grace, then end."""
        self._engine.post(ev.Stopping(reason))

    def stop_at_once(self) -> None:
        """End without waiting for anything."""
        self._engine.end(EXIT_TOLD_TWICE)

    async def run(self, ready: Callable[[str], None] | None = None) -> int:
        """Serve until the prover shall end; returns the exit code. For `ready` see `main`."""
        address = self._server.bind(self._config.listen)
        await self._server.start()
        try:
            metrics = "" if self._probes is None else self._probes.bind(self._config.metrics_listen)
            run_file = self._write_run_file(address, metrics)
        except BaseException:
            if self._probes is not None:
                await self._probes.stop()
            await self._server.stop(0)
            self._runner.close()
            raise
        if self._probes is not None:
            self._probes.start()
        _log.info(
            "prover.started",
            prover_id=self._config.prover_id,
            address=address,
            metrics=metrics,
            schedulers=list(self._config.schedulers),
            memory_bytes=self._config.total_bytes,
            build=self._build.fingerprint.as_object(),
        )
        _warn_of_memory(self._config.total_bytes, memory_limit_bytes())
        if ready is not None:
            ready(address)
        link = asyncio.create_task(self._link.run(), name="link")
        circuits = asyncio.create_task(self._circuits.run(), name="circuits")
        build = asyncio.create_task(
            self._build.watch(self._config.build_check / 1e9, self._link.send_hello), name="build"
        )
        beats = asyncio.create_task(pulse(_PULSE_S, self._beat), name="pulse")
        try:
            return await self._wait(link, circuits, build, beats)
        finally:
            await self._server.serving(False)
            await self._end_link(link)
            for task in (circuits, build, beats):
                task.cancel()
            await asyncio.gather(circuits, build, beats, return_exceptions=True)
            if self._probes is not None:
                await self._probes.stop()
            self._runner.close()
            await self._server.stop(0)
            run_file.unlink(missing_ok=True)

    async def _wait(self, *tasks: asyncio.Task[None]) -> int:
        """Return the exit code; a part that broke is raised."""
        exited = self._engine.exited
        parts: set[asyncio.Future[Any]] = {exited, *tasks}
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in done:
            part.result()
        return exited.result()

    async def _end_link(self, link: asyncio.Task[None]) -> None:
        """Let the newest Actual leave, unless the scheduler does not take it."""
        self._link.close()
        await asyncio.wait({link}, timeout=_LINK_CLOSE_S)
        link.cancel()
        await asyncio.gather(link, return_exceptions=True)

    def _hello(self) -> dispatch_pb2.Hello:
        config = self._config
        return dispatch_pb2.Hello(
            prover_id=config.prover_id,
            instance_id=self._instance_id,
            contract_min=CONTRACT,
            contract_max=CONTRACT,
            features=self._build.features,
            fingerprint=translate.fingerprint_message(self._build.fingerprint),
            total=translate.bytes_message(Bytes(config.total_bytes)),
            max_leases=config.n_leases,
            express_leases=1,
            offers=[translate.offer_message(offer) for offer in self._circuits.offers],
            labels=dict(label.split("=", 1) for label in config.labels),
        )

    def _actual_message(self) -> dispatch_pb2.Actual:
        return translate.actual_message(self._engine.actual(), memory.resident_bytes())

    def _view_changed(self, urgent: bool) -> None:
        self._link.send_actual(urgent=urgent)
        self._show_health()

    def why_not_ready(self) -> list[str]:
        """Return why no leases can come; nothing = they can."""
        reasons = []
        actual = self._engine.actual()
        if actual.condition is not Condition.READY:
            reasons.append(f"the prover is {actual.condition.name}: {actual.reason}")
        if not self._link.address:
            reasons.append(f"no scheduler is connected: {', '.join(self._config.schedulers)}")
        return reasons

    def _beat(self, late_s: float) -> None:
        self._metrics.late(late_s)
        self._show_health()

    def _expose(self) -> bytes:
        return self._metrics.expose(
            self._engine.actual(),
            total_bytes=self._config.total_bytes,
            measured_bytes=memory.resident_bytes(),
            connected=bool(self._link.address),
            longest_gap_ns=0 if self._watchdog is None else self._watchdog.longest_ns,
        )

    def _show_health(self) -> None:
        ready = not self.why_not_ready()
        if ready is not self._ready:
            self._ready = ready
            task = asyncio.get_running_loop().create_task(self._server.serving(ready))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _from_link(self, event: ev.Event) -> None:
        self._engine.post(event)
        self._show_health()

    def _catalogue_changed(self, revision: bytes) -> None:
        self._circuits.revision(revision)

    def _offers_changed(self) -> None:
        self._engine.post(ev.OffersChanged(self._circuits.key_bytes()))
        self._metrics.offered(self._circuits.offers)
        self._link.send_hello()

    def _write_run_file(self, address: str, metrics: str) -> Path:
        """Write the real address for others of this machine to find.

        Raises:
            DataDirUnusableError: it cannot be written.
        """
        folder = self._config.data_dir / "run"
        path = folder / f"{self._config.prover_id}.json"
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        content = {
            "prover_id": self._config.prover_id,
            "instance_id": self._instance_id,
            "address": address,
            "metrics_listen": metrics,
            "pid": os.getpid(),
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content) + "\n")
            temporary.rename(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise DataDirUnusableError(self._config.data_dir, error) from error
        return path


def _warn_of_memory(total_bytes: int, limit_bytes: int) -> None:
    """Log that more memory is promised than there is: the kernel would end the process for it."""
    if total_bytes > limit_bytes:
        _log.warning(
            "prover.memory",
            memory_bytes=total_bytes,
            limit_bytes=limit_bytes,
            cure=f"set [prover] memory below {format_size(limit_bytes)} or raise the limit of the "
            "machine or its cgroup",
        )


def _catch_signals(prover: Prover) -> None:
    """Let the first SIGTERM or SIGINT drain the prover and the second end it."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def first(number: signal.Signals) -> None:
        _log.info("prover.stopping", signal=number.name)
        prover.stop(f"the prover was told to stop by {number.name}")
        for other in numbers:
            loop.add_signal_handler(other, prover.stop_at_once)

    for number in numbers:
        loop.add_signal_handler(number, first, number)


def _make_backend(config: ProverConfig) -> tuple[Backend, Watchdog | None]:
    """Return the backend and who watches it; the reference shows no progress to watch."""
    if config.backend == "reference":
        from partita.groth16.reference import ReferenceBackend

        return ReferenceBackend(), None
    from partita.groth16 import native

    if config.cores is not None:
        native.set_threads(config.cores)
    return native.NativeBackend(), Watchdog(native.stamps, floor_ns=config.watchdog_stall)
