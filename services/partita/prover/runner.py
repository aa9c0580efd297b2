"""Executes what the core decides: fetches on the event loop, everything that computes on threads.

One device thread, one thread for each synthesis slot and the express one, one that loads keys and
one that unmaps. Each stage answers with exactly one event, after it has given back its own
memory; no exception of a stage ends a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from partita.circuits.errors import SynthesisStoppedError
from partita.groth16 import selftest
from partita.groth16.errors import ComputeError, FormatError, Groth16Error
from partita.groth16.prover import Stage, Stopped, prove
from partita.groth16.selftest import Step
from partita.prover import memory, stages
from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import Bytes, Failure, FailureKind, LeaseOrder
from partita.prover.failures import failure_of
from partita.prover.inputs import InputBuffer, fetch_input
from partita.prover.workers import Workers
from partita.service import logs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    import grpc.aio

    from partita.groth16.backend import Backend
    from partita.groth16.witness import Witness
    from partita.prover.circuits import Circuits
    from partita.prover.offers import Circuit
    from partita.prover.watchdog import Watchdog

_FAULT_AFTER = 3
_STAGES = list(Stage)
_log = logs.get("runner")


@dataclass(slots=True)
class _Work:
    """What a lease holds here, from its fetch until it is freed."""

    order: LeaseOrder
    stop: threading.Event = field(default_factory=threading.Event)
    fetch: asyncio.Task[InputBuffer] | None = None
    input: InputBuffer | None = None
    witness: Witness | None = None
    held_bytes: int = 0

    def release(self) -> None:
        """Give back all memory; the witness first, because it may be a view of the input."""
        self.witness = None
        if self.input is not None:
            if not self.input.release():
                _log.error("runner.input_in_use", lease_id=self.order.lease_id)
            self.input = None


class Runner:
    """The hands of one prover process.

    Args:
        backend: computes.
        circuits: what is offered.
        channel: waits for a scheduler and returns the channel to it.
        post: takes events for the core, from any thread.
        synthesis_threads: threads beside the express one.
        watchdog: watches the device thread; None for a backend that shows no progress.
        build: names this build where a failure may be its fault.
    """

    def __init__(
        self,
        backend: Backend,
        circuits: Circuits,
        *,
        channel: Callable[[], Awaitable[grpc.aio.Channel]],
        post: Callable[[ev.Event], None],
        synthesis_threads: int,
        watchdog: Watchdog | None = None,
        build: str = "",
    ) -> None:
        self._build = build
        self._backend = backend
        self._circuits = circuits
        self._channel = channel
        self._post = post
        self._watchdog = watchdog
        self._works: dict[str, _Work] = {}
        self._resident: dict[bytes, stages.ResidentKey] = {}
        self._broken_in_a_row = 0
        self._synthesis = Workers("synthesis", synthesis_threads + 1)
        self._device = Workers("device")
        self._loader = Workers("keys")
        self._unmapper = Workers("unmap")

    @property
    def computes(self) -> bool:
        """Whether a thread still runs a call."""
        return any(x.busy for x in (self._synthesis, self._device, self._loader, self._unmapper))

    def execute(self, effect: fx.Effect) -> None:
        """Start what an effect asks for; called on the event loop."""
        match effect:
            case fx.FetchInput(order):
                work = self._works[order.lease_id] = _Work(order)
                work.fetch = asyncio.create_task(fetch_input(order, self._channel))
                work.fetch.add_done_callback(lambda task: self._fetched(work, task))
                work.order = replace(order, inline=b"")
            case fx.Synthesize(order):
                work = self._works[order.lease_id]
                work.order = order
                self._synthesis.submit(lambda: self._stage(work, self._synthesize))
            case fx.Prove(order):
                work = self._works[order.lease_id]
                work.order = order
                self._device.submit(lambda: self._stage(work, self._prove))
            case fx.StopStage(lease_id):
                work = self._works[lease_id]
                work.stop.set()
                if work.fetch is not None:
                    work.fetch.cancel()
            case fx.FreeLease(lease_id):
                work = self._works.pop(lease_id)
                self._unmapper.submit(lambda: self._free(work))
            case fx.LoadKey(manifest, limit):
                self._loader.submit(lambda: self._load(manifest, limit))
            case fx.UnloadKey(manifest):
                self._unmapper.submit(lambda: self._unload(manifest))

    def self_test(self, circuit: Circuit, tell: Callable[[Step | None], None]) -> None:
        """Test the backend, and the circuit's key if it is in memory, on the device thread.

        Args:
            circuit: a circuit with a manifest.
            tell: told each step as it is finished, then None; from that thread.
        """
        self._device.submit(lambda: self._self_test(circuit, tell))

    def _self_test(self, circuit: Circuit, tell: Callable[[Step | None], None]) -> None:
        try:
            manifest = circuit.manifest
            if manifest is None:
                raise FormatError("manifest", circuit.offer.unusable_reason)
            for step in selftest.known_answers(self._backend, manifest.curve, manifest.family):
                tell(step)
            resident = self._resident.get(circuit.offer.manifest_sha256)
            if resident is None:
                tell(Step("key", ok=True, detail="not in memory: tested when it is loaded"))
            else:
                for step in selftest.consistency(self._backend, resident.key):
                    tell(step)
        except Exception as error:  # noqa: BLE001  (each one is an answer)
            tell(Step("self-test", ok=False, detail=f"{type(error).__name__}: {error}"))
        tell(None)

    def close(self) -> None:
        """Ask everything to stop; does not wait."""
        for work in self._works.values():
            work.stop.set()
            if work.fetch is not None:
                work.fetch.cancel()
        for workers in (self._synthesis, self._device, self._loader, self._unmapper):
            workers.close()

    def _fetched(self, work: _Work, task: asyncio.Task[InputBuffer]) -> None:
        """Take the end of a fetch: a callback, because a cancelled task may never have begun."""
        work.fetch = None
        if task.cancelled():
            self._post(ev.StageStopped(work.order.lease_id))
        elif (error := task.exception()) is not None:
            self._post(ev.StageFailed(work.order.lease_id, self._told(work, error)))
        else:
            work.input = task.result()
            work.held_bytes = work.input.size_bytes
            self._post(ev.InputFetched(work.order.lease_id))

    def _stage(self, work: _Work, run: Callable[[_Work], ev.Event]) -> None:
        """Run a stage on a thread and post how it ended."""
        fault = ""
        try:
            event = run(work)
        except (Stopped, SynthesisStoppedError):
            event = ev.StageStopped(work.order.lease_id)
        except Exception as error:  # noqa: BLE001  (each one is the lease's failure)
            event = ev.StageFailed(work.order.lease_id, self._told(work, error))
            if isinstance(error, ComputeError):
                self._broken_in_a_row += 1
                fault = str(error)
        if not isinstance(event, ev.Synthesized):
            # Only here: while an exception lives, its frames hold views of the input.
            work.release()
        self._post(event)
        if fault and self._broken_in_a_row >= _FAULT_AFTER:
            self._post(
                ev.Faulted(
                    f"the backend failed {_FAULT_AFTER} times with no success between: {fault}"
                )
            )

    def _synthesize(self, work: _Work) -> ev.Event:
        resident, order = self._resident[work.order.manifest_sha256], work.order
        if work.input is None:
            raise RuntimeError(f"lease {order.lease_id} has no input")
        witness = stages.synthesize(resident, work.input, order.input_format, work.stop.is_set)
        stages.check_rows(
            resident, witness, self._circuits.files(), self._backend, diagnose=order.diagnose
        )
        statement = witness.statement(resident.manifest.n_public)
        work.witness = witness
        if order.input_format != "wtns":  # of a wtns the witness is a view
            work.input.release()
            work.input = None
            work.held_bytes = len(witness.values)
        return ev.Synthesized(order.lease_id, statement, hashlib.sha256(statement).digest())

    def _prove(self, work: _Work) -> ev.Event:
        resident, lease_id = self._resident[work.order.manifest_sha256], work.order.lease_id
        if work.witness is None:
            raise RuntimeError(f"lease {lease_id} has no witness")
        offer = resident.circuit.offer

        def stage_began(stage: Stage) -> None:
            if self._watchdog is not None:
                self._watchdog.stamp()
            if stage is Stage.FINISH:
                self._post(ev.DeviceDone(lease_id))
            self._post(ev.Progressed(lease_id, 1000 * _STAGES.index(stage) // len(_STAGES)))

        memory.reset_peak()
        before_bytes = memory.resident_bytes()
        with self._watching(offer.expected_ns):
            proof = prove(
                self._backend,
                resident.key,
                work.witness,
                stop=work.stop.is_set,
                stage=stage_began,
                released=lambda: self._post(ev.Released(lease_id, offer.after_release)),
            )
        grown_bytes = max(0, memory.peak_bytes() - before_bytes)
        self._broken_in_a_row = 0
        return ev.Proved(lease_id, proof.to_bytes(), Bytes(work.held_bytes + grown_bytes))

    def _watching(self, expected_ns: int) -> AbstractContextManager[None]:
        if self._watchdog is None:
            return nullcontext()
        return self._watchdog.watching(expected_ns)

    def _free(self, work: _Work) -> None:
        work.release()
        self._post(ev.LeaseFreed(work.order.lease_id))

    def _load(self, manifest: bytes, limit: Bytes) -> None:
        circuit = self._circuits.usable(manifest)
        try:
            if circuit is None:
                raise FormatError("catalogue", f"no usable circuit has manifest {manifest.hex()}")
            offered = self._circuits.offer_of(circuit)
            first = manifest not in self._circuits.checked
            resident = stages.load_key(
                circuit,
                self._circuits.files(),
                self._circuits.packed_keys,
                self._backend,
                limit,
                check_points=first,
            )
            if first:
                stages.check_key(resident, self._backend)
        except Exception as error:  # noqa: BLE001  (each one is the key's failure)
            known = isinstance(error, Groth16Error | OSError | MemoryError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
            _log.error("key.failed", reason=reason, exc_info=None if known else error)
            why = f"{reason or type(error).__name__} (build {self._build})"
            self._post(ev.KeyFailed(manifest, why))
            return
        self._circuits.checked.add(manifest)
        self._resident[manifest] = resident
        self._post(ev.KeyLoaded(manifest, resident.held))
        if self._circuits.offer_of(circuit) != offered:
            self._circuits.offer_changed()

    def _unload(self, manifest: bytes) -> None:
        self._resident.pop(manifest).release()
        self._post(ev.KeyUnloaded(manifest))

    def _told(self, work: _Work, error: BaseException) -> Failure:
        """Log why a stage failed and return its Failure."""
        failure = failure_of(error, self._build)
        unforeseen = failure.kind is FailureKind.INTERNAL
        tell = _log.error if unforeseen else _log.info
        tell(
            "lease.failed",
            lease_id=work.order.lease_id,
            kind=failure.kind.name,
            reason=failure.reason,
            exc_info=error if unforeseen else None,
        )
        return failure
