"""Witness programs of circom 2 (.wasm): compiled once, checked, and started for each witness.

A program is someone else's code: before it runs, its imports and exports are compared with what
circom makes, and its counts are believed only within bounds. What a run may do is `circom_run`'s
business; what inputs mean is `circom`'s. Thread-safe.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import wasmtime

from partita.circuits import circom_host as host
from partita.circuits.circom_run import (
    PAGE_BYTES,
    Lane,
    ProgramRun,
    RunLimits,
    first_line,
    new_engine,
)
from partita.circuits.elements import ELEMENT_BYTES
from partita.circuits.errors import ProgramError
from partita.circuits.snarkjs_curves import curve_of_scalar_modulus, describe_modulus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from partita.groth16.curves import Curve

_PROBE_TIME_NS: Final = 10_000_000_000
_FIELD_WORDS: Final = ELEMENT_BYTES // 4
_MAX_WIRES: Final = 1 << 27
_MAX_MEMORY_BYTES: Final = 1 << 32

_EXPORTS: Final = {
    "getVersion": "() -> i32",
    "getMinorVersion": "() -> i32",
    "getPatchVersion": "() -> i32",
    "getSharedRWMemoryStart": "() -> i32",
    "readSharedRWMemory": "(i32) -> i32",
    "init": "(i32) -> ()",
    "setInputSignal": "(i32, i32, i32) -> ()",
    "getInputSignalSize": "(i32, i32) -> i32",
    "getRawPrime": "() -> ()",
    "getFieldNumLen32": "() -> i32",
    "getWitnessSize": "() -> i32",
    "getInputSize": "() -> i32",
    "getWitness": "(i32) -> ()",
    "getMessageChar": "() -> i32",
}
_CIRCOM_1_EXPORTS: Final = {"getFrLen", "getNVars", "setSignal", "getPWitness"}


def never() -> bool:
    """A `stop` that never stops."""
    return False


class CircomProgram:
    """A compiled witness program.

    Args:
        source: the name of the file, for errors.
        wasm: its bytes.
        probe_time_ns: the time limit for asking it for its counts.

    Attributes:
        version: circom's version, such as (2, 2, 3).
        curve: the curve whose scalar field it computes in.
        n_wires: the values of a witness.
        n_inputs: the values of all its inputs together.
        initial_memory_bytes: the linear memory that a run starts with.

    Raises:
        ProgramError: no WebAssembly, no circom program, one of circom 1, of another field, or
            one that fails as soon as it is asked for its counts.
    """

    def __init__(
        self, source: str, wasm: bytes | memoryview, *, probe_time_ns: int = _PROBE_TIME_NS
    ) -> None:
        self.source = source
        code = bytes(wasm)
        if code[:4] != b"\0asm":
            raise ProgramError(source, "is no WebAssembly file: it does not start with \\0asm")
        engine = new_engine()
        try:
            module = wasmtime.Module(engine, code)
        except wasmtime.WasmtimeError as error:
            raise ProgramError(source, f"is no valid WebAssembly: {first_line(error)}") from None
        self.initial_memory_bytes = _check_interface(source, module)
        self._compiled = module.serialize()
        self._idle = [Lane(engine, module)]
        self._lock = threading.Lock()
        _OPEN.add(self)
        self._probe(probe_time_ns)

    def close(self) -> None:
        """Free the compiled code of all lanes that are not in use."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def _probe(self, time_ns: int) -> None:
        memory_bytes = max(self.initial_memory_bytes, PAGE_BYTES)
        with self.start(RunLimits(memory_bytes, time_ns)) as run:
            self.version = tuple(
                run.call(name) for name in ("getVersion", "getMinorVersion", "getPatchVersion")
            )
            if self.version[0] != 2:
                text = ".".join(map(str, self.version))
                raise ProgramError(
                    self.source, f"was compiled by circom {text}; compile it with circom 2"
                )
            n_words = run.call("getFieldNumLen32")
            if n_words != _FIELD_WORDS:
                raise ProgramError(
                    self.source,
                    f"computes with numbers of {n_words} words; compile it with --prime bn128 or "
                    "--prime bls12381",
                )
            run.call("getRawPrime")
            words = [run.call("readSharedRWMemory", i) % (1 << 32) for i in range(n_words)]
            modulus = sum(word << (32 * i) for i, word in enumerate(words))
            curve = curve_of_scalar_modulus(modulus)
            if curve is None:
                raise ProgramError(self.source, describe_modulus(modulus))
            self.curve: Curve = curve
            self.n_wires = run.call("getWitnessSize")
            self.n_inputs = run.call("getInputSize")
        if not 0 <= self.n_inputs < self.n_wires <= _MAX_WIRES:
            raise ProgramError(
                self.source, f"claims {self.n_wires} wires and {self.n_inputs} input values"
            )

    @contextmanager
    def start(self, limits: RunLimits, stop: Callable[[], bool] = never) -> Iterator[ProgramRun]:
        """A fresh instance for one run on the calling thread; see `ProgramRun` for errors."""
        with self._lock:
            lane = self._idle.pop() if self._idle else None
        if lane is None:
            engine = new_engine()
            lane = Lane(engine, wasmtime.Module.deserialize(engine, self._compiled))
        try:
            with ProgramRun(self.source, lane, limits, stop) as run:
                yield run
        finally:
            with self._lock:
                self._idle.append(lane)


_OPEN: Final[weakref.WeakSet[CircomProgram]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """wasmtime's objects cannot free themselves once the interpreter has unloaded its module."""
    for program in list(_OPEN):
        program.close()


class ProgramCache:
    """Compiled programs by digest; the least recently used ones are dropped. Thread-safe.

    Args:
        capacity: programs kept.
    """

    def __init__(self, capacity: int = 16) -> None:
        self._capacity = capacity
        self._programs: OrderedDict[str, CircomProgram] = OrderedDict()
        self._compiling: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(
        self, sha256: str, source: str, read: Callable[[], bytes | memoryview]
    ) -> CircomProgram:
        """The program of this digest, compiled at the first call and by one caller only.

        Args:
            sha256: the digest of the file, in hex.
            source: its name, for errors.
            read: gives its bytes if it must be compiled.

        Raises:
            ProgramError: as `CircomProgram`.
        """
        with self._lock:
            compiling = self._compiling.setdefault(sha256, threading.Lock())
        with compiling:
            with self._lock:
                program = self._programs.get(sha256)
            if program is None:
                program = CircomProgram(source, read())
            with self._lock:
                self._programs[sha256] = program
                self._programs.move_to_end(sha256)
                while len(self._programs) > self._capacity:
                    dropped, _ = self._programs.popitem(last=False)
                    self._compiling.pop(dropped, None)
        return program


def _check_interface(source: str, module: wasmtime.Module) -> int:
    """Compare imports and exports with circom's; the bytes of the initial memory."""
    exports = {str(export.name): export.type for export in module.exports}
    if _CIRCOM_1_EXPORTS & exports.keys() and "getVersion" not in exports:
        raise ProgramError(source, "was compiled by circom 1; compile it with circom 2.0 or later")
    for name, signature in _EXPORTS.items():
        found = exports.get(name)
        if found is None:
            raise ProgramError(
                source, f"is no witness program of circom 2: it does not export {name}"
            )
        if not isinstance(found, wasmtime.FuncType) or _signature(found) != signature:
            raise ProgramError(source, f"exports {name}, but not as a function {signature}")
    memory = exports.get("memory")
    if not isinstance(memory, wasmtime.MemoryType) or memory.is_64 or memory.is_shared:
        raise ProgramError(source, "is no witness program of circom 2: it exports no memory")
    for wanted in module.imports:
        if wanted.module != host.RUNTIME_MODULE or wanted.name not in host.RUNTIME_IMPORTS:
            raise ProgramError(
                source,
                f"imports {wanted.module}.{wanted.name}, which programs of circom 2 do not",
            )
    return memory.limits.min * PAGE_BYTES


def _signature(function: wasmtime.FuncType) -> str:
    results = ", ".join(map(str, function.results))
    return f"({', '.join(map(str, function.params))}) -> {results or '()'}"
