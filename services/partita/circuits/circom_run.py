"""One run of a circom witness program: a fresh instance, watched, within limits.

A run is interrupted by moving the epoch of its engine, so concurrent runs have engines of their
own: a `Lane` is an engine with the modules loaded into it, used by one run at a time.

wasmtime frees the interpreter lock for every call, and no Python function is called back from a
program, so a run costs Python a handful of calls whatever the size of the circuit.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import wasmtime

from partita.circuits import circom_host as host
from partita.circuits.elements import ELEMENT_BYTES
from partita.circuits.errors import (
    CircuitAssertError,
    ProgramError,
    ProgramLimitError,
    SynthesisStoppedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PAGE_BYTES: Final = 65536
_STOP_POLL_S: Final = 0.02
_ASSERT_FAILED: Final = 4
_EXCEPTIONS: Final = {
    1: "it does not know an input signal it was given",
    2: "more input signals were set than it has",
    3: "an input signal was set twice",
    _ASSERT_FAILED: "an assertion failed",
    5: "it ran out of its own memory",
    6: "an input array was longer than its signal",
}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run of a program may use.

    Attributes:
        memory_bytes: each linear memory: the program's, and the copy of inputs or witness.
        time_ns: wall time.
    """

    memory_bytes: int
    time_ns: int


class Lane:
    """An engine with a program and our two modules loaded, for one run at a time.

    Args:
        engine: an engine that no other lane uses.
        program: the program, loaded into it.
    """

    def __init__(self, engine: wasmtime.Engine, program: wasmtime.Module) -> None:
        self.engine = engine
        self.program = program
        self.runtime = wasmtime.Module(engine, host.RUNTIME)
        self.courier = wasmtime.Module(engine, host.COURIER)

    def close(self) -> None:
        """Free the compiled code; the lane is of no use afterwards."""
        for owned in (self.courier, self.runtime, self.program, self.engine):
            owned.close()


def new_engine() -> wasmtime.Engine:
    """An engine whose epoch can interrupt what runs on it."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.wasm_multi_memory = True
    config.wasm_memory64 = False
    config.wasm_threads = False
    return wasmtime.Engine(config)


class ProgramRun:
    """An instance of a program, for use on one thread inside `with`.

    Args:
        source: the name of the program, for errors.
        lane: where it runs.
        limits: what it may use.
        stop: asked every 20 ms from another thread; True ends the run.

    Raises:
        ProgramError: from `with` and every method: the program broke down.
        ProgramLimitError: it used more than its limits.
        CircuitAssertError: one of its assertions failed.
        SynthesisStoppedError: `stop` said so.
    """

    def __init__(
        self, source: str, lane: Lane, limits: RunLimits, stop: Callable[[], bool]
    ) -> None:
        self._source = source
        self._lane = lane
        self._limits = limits
        self._stop = stop
        self._over = threading.Event()
        self._stopped = False
        self._watcher = threading.Thread(target=self._watch, name="circom-watch", daemon=True)
        self._store = wasmtime.Store(lane.engine)
        self._store.set_limits(memory_size=limits.memory_bytes)
        self._store.set_epoch_deadline(1)
        self._memory: wasmtime.Memory | None = None

    def __enter__(self) -> ProgramRun:
        self._watcher.start()
        try:
            self._instantiate()
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            failure = self._failure(error)
            self._finish()
            raise failure from None
        except BaseException:
            self._finish()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._finish()

    def call(self, name: str, *arguments: int) -> int:
        """Call an export of the program; the result of one without a result is 0."""
        try:
            result = cast("wasmtime.Func", self._program[name])(self._store, *arguments)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise self._failure(error) from None
        return cast("int", result) if result is not None else 0

    def feed(self, records: bytes, count: int) -> None:
        """Set `count` input values from records as `circom_host.input_record` makes them.

        The last one makes the program compute the witness.
        """
        self._reserve(len(records))
        self._cargo.write(self._store, records)
        self._drive("feed", count)

    def fetch(self, n_wires: int) -> bytearray:
        """The whole witness: n_wires x 32 bytes."""
        size_bytes = n_wires * ELEMENT_BYTES
        self._reserve(size_bytes)
        self._drive("fetch", n_wires)
        return self._cargo.read(self._store, 0, size_bytes)

    def _instantiate(self) -> None:
        store, lane = self._store, self._lane
        self._runtime = wasmtime.Instance(store, lane.runtime, []).exports(store)
        imports = [self._runtime[str(wanted.name)] for wanted in lane.program.imports]
        instance = wasmtime.Instance(store, lane.program, imports)
        self._program = instance.exports(store)
        self._memory = cast("wasmtime.Memory", self._program["memory"])
        self._courier = wasmtime.Instance(
            store,
            lane.courier,
            [self._program[str(wanted.name)] for wanted in lane.courier.imports],
        ).exports(store)
        self._cargo = cast("wasmtime.Memory", self._courier["cargo"])
        table = cast("wasmtime.Table", self._runtime["program"])
        table.set(store, 0, self._program["getMessageChar"])

    def _drive(self, name: str, count: int) -> None:
        try:
            cast("wasmtime.Func", self._courier[name])(self._store, count)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise self._failure(error) from None

    def _reserve(self, size_bytes: int) -> None:
        missing = -(-size_bytes // PAGE_BYTES) - self._cargo.size(self._store)
        if missing <= 0:
            return
        try:
            self._cargo.grow(self._store, missing)
        except wasmtime.WasmtimeError:
            raise ProgramLimitError(
                self._source,
                f"its inputs or witness need {size_bytes} bytes, the circuit's memory limit is "
                f"{self._limits.memory_bytes}",
            ) from None

    def _failure(self, error: wasmtime.WasmtimeError | wasmtime.Trap) -> Exception:
        """What a trap means, from what the program told `RUNTIME` and what the watcher did."""
        if isinstance(error, wasmtime.WasmtimeError):
            return self._refusal(error)
        trap = error.trap_code
        if trap is wasmtime.TrapCode.INTERRUPT:
            if self._stopped:
                return SynthesisStoppedError()
            return ProgramLimitError(
                self._source,
                f"was still running after {self._limits.time_ns / 1e9:g} s, the circuit's time "
                f"limit{self._memory_note()}; it may loop for ever with these inputs",
            )
        code = cast("int", cast("wasmtime.Global", self._runtime["code"]).value(self._store))
        if not code:
            name = trap.name.lower().replace("_", " ") if trap is not None else first_line(error)
            return ProgramError(self._source, f"broke down: {name}")
        length = cast("int", cast("wasmtime.Global", self._runtime["length"]).value(self._store))
        record = cast("wasmtime.Memory", self._runtime["said"]).read(self._store, 0, length)
        words = host.said(bytes(record))
        meaning = _EXCEPTIONS.get(code, f"exception {code}")
        if code == _ASSERT_FAILED:
            return CircuitAssertError(words or meaning)
        return ProgramError(self._source, f"{meaning}{': ' + words if words else ''}")

    def _refusal(self, error: wasmtime.WasmtimeError) -> Exception:
        text = first_line(error)
        if "memory" in text and "limit" in text:
            return ProgramLimitError(
                self._source,
                f"wants more memory than the circuit's limit of {self._limits.memory_bytes} bytes",
            )
        return ProgramError(self._source, f"cannot be run: {text}")

    def _memory_note(self) -> str:
        used = self._memory.data_len(self._store) if self._memory is not None else 0
        if used + 64 * PAGE_BYTES < self._limits.memory_bytes:
            return ""
        return f", and had grown to its memory limit of {self._limits.memory_bytes} bytes"

    def _watch(self) -> None:
        end = time.monotonic_ns() + self._limits.time_ns
        while True:
            left_s = (end - time.monotonic_ns()) / 1e9
            if self._over.wait(max(0.0, min(left_s, _STOP_POLL_S))):
                return
            self._stopped = self._stop()
            if self._stopped or time.monotonic_ns() >= end:
                self._lane.engine.increment_epoch()
                return

    def _finish(self) -> None:
        # Joined, so that a late tick of this run cannot interrupt the lane's next one.
        self._over.set()
        self._watcher.join()
        self._store.close()


def first_line(error: Exception) -> str:
    """The first line of a message of wasmtime; the rest is a backtrace."""
    return str(error).strip().partition("\n")[0][:200]
