"""The scheduler's view of the catalogue on disk: looked at again and again, by stat.

Keeps the verifying key of every circuit it has seen while it runs, so that proofs of a job whose
circuit was just removed can still be checked. Unusable entries are logged once and left out; why
they are unusable is kept for those who ask for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from partita.circuits.catalogue import Catalogue, CatalogueState, Entry
from partita.circuits.errors import BrokenCircuitError
from partita.groth16.errors import Groth16Error
from partita.groth16.verifying_key import VerifyingKey
from partita.scheduler.core.events import CatalogueChanged
from partita.scheduler.core.model import BlobRef, CircuitInfo
from partita.service import logs

_log = logs.get("catalogue")


@dataclass(frozen=True, slots=True)
class CircuitFile:
    """One served file of a circuit."""

    role: str
    ref: BlobRef
    path: Path


@dataclass(frozen=True, slots=True)
class KnownCircuit:
    """A usable circuit with what the API shows of it."""

    entry: Entry
    files: tuple[CircuitFile, ...]
    vk: VerifyingKey


@dataclass(frozen=True, slots=True)
class Known:
    """All usable circuits at one moment, and why the others are not."""

    revision: bytes
    circuits: dict[str, KnownCircuit] = field(default_factory=dict)
    by_digest: dict[bytes, CircuitFile] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def event(self) -> CatalogueChanged:
        """Return what the core is told."""
        return CatalogueChanged(
            self.revision,
            tuple(
                CircuitInfo(
                    name, known.entry.manifest_sha256, tuple(known.entry.manifest.input_formats)
                )
                for name, known in sorted(self.circuits.items())
            ),
        )


def _unchanged(_: Catalogue) -> None:
    """Change nothing: only look."""


class CatalogueWatcher:
    """Follows the catalogue of a data directory.

    Args:
        root: DATA_DIR/circuits.
        changed: told on the loop's thread after each change.
    """

    def __init__(self, root: Path, changed: Callable[[CatalogueChanged], None]) -> None:
        self.known = Known(b"")
        self._catalogue = Catalogue(root)
        self._changed = changed
        self._keys: dict[bytes, VerifyingKey] = {}
        self._state: CatalogueState | None = None
        self._broken: dict[str, str] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="catalogue")
        self._task: asyncio.Task[None] | None = None

    def verifying_key(self, manifest_sha256: bytes) -> VerifyingKey:
        """Return the verifying key of a manifest; LookupError if no such circuit was seen."""
        return self._keys[manifest_sha256]

    async def refresh(self) -> None:
        """Look now; tell of a change before returning."""
        await self.run(_unchanged)

    async def run(self, change: Callable[[Catalogue], None]) -> None:
        """Change the catalogue in the watcher's thread, then look at it and tell of the change.

        A caller that is cancelled meanwhile takes nothing with it: what was found is told.

        Raises:
            Whatever `change` raises.
        """
        loop = asyncio.get_running_loop()
        looking = loop.run_in_executor(self._thread, self._look, change)
        looking.add_done_callback(self._looked)
        await asyncio.shield(looking)

    def _looked(self, looking: asyncio.Future[Known | None]) -> None:
        if looking.cancelled() or looking.exception() is not None:
            return
        known = looking.result()
        if known is not None:
            self.known = known
            self._changed(known.event())

    def _look(self, change: Callable[[Catalogue], None]) -> Known | None:
        change(self._catalogue)
        state = self._catalogue.scan()
        if state is self._state:
            return None
        known = Known(state.revision, broken=dict(state.broken))
        for name, entry in state.circuits.items():
            try:
                known.circuits[name] = circuit = self._circuit(entry)
            except BrokenCircuitError as error:
                known.broken[name] = error.what
                continue
            except (Groth16Error, OSError) as error:
                known.broken[name] = str(error)
                continue
            self._keys[entry.manifest_sha256] = circuit.vk
            known.by_digest.update((file.ref.sha256, file) for file in circuit.files)
        for name, why in known.broken.items():
            if self._broken.get(name) != why:
                _log.warning("catalogue.unusable", circuit_id=name, why=why)
        self._broken = known.broken
        self._state = state
        return known

    def _circuit(self, entry: Entry) -> KnownCircuit:
        vk = self._keys.get(entry.manifest_sha256) or entry.verifying_key()
        entry.check_mark()
        files = []
        for role, digest in entry.manifest.files.items():
            path = entry.file(role)
            ref = BlobRef(bytes.fromhex(digest), path.stat().st_size)
            files.append(CircuitFile(role, ref, path))
        return KnownCircuit(entry, tuple(files), vk)

    def follow(self, interval_ns: int) -> None:
        """Look at it every `interval_ns` until `close`."""
        self._task = asyncio.create_task(self._follow(interval_ns / 1e9))

    async def _follow(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.refresh()
            except OSError as error:
                _log.error("catalogue.unreadable", error=str(error))

    async def close(self) -> None:
        """Stop following; looks that have begun are told before this returns."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        # The one thread comes to this after all that was asked of it before.
        await asyncio.get_running_loop().run_in_executor(self._thread, int)
        self._thread.shutdown()
