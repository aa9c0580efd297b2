"""The catalogue: the circuits of a data directory, one folder each.

    circuits/<circuit_id>/manifest.json   the canonical manifest
    circuits/<circuit_id>/<role>          each file it names: zkey or params, vk, wasm, r1cs, sym
    circuits/.files/<sha256>              files that came from elsewhere (`circuit_files`)
    circuits/.new-*                       entries being written; ignored, swept after a day

A folder appears and disappears by one rename, so several processes may use a catalogue at once: a
reader sees an entry in full or not at all. A name is bound to one manifest until it is removed. A
damaged entry is reported and does not disturb the others.

`intake` checks files before they come here. Here only the verifying key and the mark of development
keys are read: what a manifest that was edited by hand contradicts first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.circuits.container import map_file
from partita.circuits.development import contradiction
from partita.circuits.durable import sha256_of, sync_directory
from partita.circuits.errors import BrokenCircuitError, CatalogueError, UnknownCircuitError
from partita.circuits.manifest import KEY_ROLES, Manifest
from partita.circuits.staging import MANIFEST_NAME, STAGING_PREFIX, Staging
from partita.groth16.errors import FormatError, InputError
from partita.groth16.verifying_key import VerifyingKey

if TYPE_CHECKING:
    from collections.abc import Mapping

CIRCUIT_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAX_MANIFEST_BYTES: Final = 1 << 20
_SWEEP_AFTER_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Entry:
    """A circuit of the catalogue.

    Attributes:
        circuit_id: its name.
        manifest: what it is.
        manifest_sha256: 32 bytes.
        path: its folder.
    """

    circuit_id: str
    manifest: Manifest
    manifest_sha256: bytes
    path: Path

    def file(self, role: str) -> Path:
        """Where the file of a role lies; KeyError if the circuit has none."""
        if role not in self.manifest.files:
            raise KeyError(role)
        return self.path / role

    def verifying_key(self) -> VerifyingKey:
        """The verifying key, its bytes compared with their digest; subgroups are not checked.

        Raises:
            BrokenCircuitError: the file is missing, altered, or no verifying key of the circuit.
        """
        expected = self.manifest.files["vk"]
        try:
            data = self.file("vk").read_bytes()
        except OSError as error:
            raise BrokenCircuitError(
                self.circuit_id, f"vk cannot be read: {error.strerror}"
            ) from None
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise BrokenCircuitError(
                self.circuit_id, f"vk was altered: expected {expected}, found {found}"
            )
        try:
            key = VerifyingKey.from_bytes(self.manifest.curve, data, check_subgroups=False)
        except InputError as error:
            raise BrokenCircuitError(self.circuit_id, f"vk is none: {error}") from None
        n_public = self.manifest.n_public
        if key.n_public != n_public:
            raise BrokenCircuitError(
                self.circuit_id, f"vk is of {key.n_public} public inputs, not of {n_public}"
            )
        return key

    def check_mark(self) -> None:
        """Compare what the manifest and the key file say of a development set-up.

        Raises:
            BrokenCircuitError: they differ, or the key file cannot be read.
        """
        role = KEY_ROLES[self.manifest.family][0]
        try:
            found = contradiction(self.manifest, role, map_file(self.file(role)))
        except OSError as error:
            raise BrokenCircuitError(
                self.circuit_id, f"{role} cannot be read: {error.strerror}"
            ) from None
        except FormatError as error:
            raise BrokenCircuitError(self.circuit_id, str(error)) from None
        if found:
            raise BrokenCircuitError(self.circuit_id, found)

    def contradictions(self) -> list[str]:
        """What the manifest says and its key does not, where the files are as their digests say."""
        found: list[str] = []
        for check in (self.verifying_key, self.check_mark):
            try:
                check()
            except BrokenCircuitError as error:
                found.append(error.what)
        return found


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a circuit whose manifest can be read.

    Attributes:
        circuit_id: which.
        what: the file, what was expected of it and what was found.
    """

    circuit_id: str
    what: str


@dataclass(frozen=True, slots=True)
class CatalogueState:
    """What a scan found.

    Attributes:
        revision: SHA-256 over the sorted (circuit_id, manifest digest): 32 bytes.
        circuits: the usable entries by name.
        broken: why other entries are unusable, by name.
    """

    revision: bytes
    circuits: Mapping[str, Entry]
    broken: Mapping[str, str]


class Catalogue:
    """The circuits under one folder. Not thread-safe; several processes may use the folder.

    Args:
        root: `DATA_DIR/circuits`; made when something is first added.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._seen: dict[str, tuple[object, Entry | str]] = {}
        self._state = _state({})

    def scan(self) -> CatalogueState:
        """Look at the folder again; only entries whose files changed are read.

        Returns:
            The same object as before if nothing changed.
        """
        seen: dict[str, tuple[object, Entry | str]] = {}
        for name in self._names():
            stamp = self._stamp(name)
            before = self._seen.get(name)
            if before is not None and stamp == before[0]:
                seen[name] = before
            else:
                seen[name] = stamp, self._read(name)
        if seen != self._seen:
            self._seen = seen
            self._state = _state({name: found for name, (_, found) in seen.items()})
        return self._state

    def show(self, circuit_id: str) -> Entry:
        """The entry of this name.

        Raises:
            UnknownCircuitError: there is none.
            BrokenCircuitError: it is unusable.
        """
        found = self._read(circuit_id) if self._exists(circuit_id) else None
        if found is None:
            raise UnknownCircuitError(circuit_id)
        if isinstance(found, str):
            raise BrokenCircuitError(circuit_id, found)
        return found

    def verify(self, circuit_id: str | None = None) -> list[Fault]:
        """Read every file of one circuit, or of all; compare digests, then manifest and key.

        Raises:
            UnknownCircuitError, BrokenCircuitError: as `show`, for a circuit that is named.
        """
        if circuit_id is not None:
            entries = [self.show(circuit_id)]
        else:
            entries = list(self.scan().circuits.values())
        return [
            Fault(entry.circuit_id, what)
            for entry in entries
            for what in _altered(entry) or entry.contradictions()
        ]

    def stage(self, circuit_id: str) -> Staging:
        """A folder to put a new entry's files in, for use in `with`; see `Staging`.

        Raises:
            CatalogueError: the name is no circuit_id.
        """
        if CIRCUIT_ID.fullmatch(circuit_id) is None:
            raise CatalogueError(
                f"{circuit_id!r:.100} is no name for a circuit: use 1 to 64 of a-z 0-9 . _ -, "
                "a letter or digit first"
            )
        self.root.mkdir(parents=True, exist_ok=True)
        self._sweep()
        return Staging(self, circuit_id)

    def remove(self, circuit_id: str) -> None:
        """Remove an entry, broken or not.

        Raises:
            UnknownCircuitError: there is none.
        """
        if not self._exists(circuit_id):
            raise UnknownCircuitError(circuit_id)
        grave = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=self.root))
        try:
            (self.root / circuit_id).rename(grave / circuit_id)
        except FileNotFoundError:
            raise UnknownCircuitError(circuit_id) from None
        finally:
            sync_directory(self.root)
            shutil.rmtree(grave)

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.root) as found:
                return sorted(e.name for e in found if e.is_dir() and not e.name.startswith("."))
        except FileNotFoundError:
            return []

    def _exists(self, circuit_id: str) -> bool:
        return not circuit_id.startswith(".") and circuit_id in self._names()

    def _stamp(self, name: str) -> object:
        try:
            with os.scandir(self.root / name) as found:
                return sorted(
                    (e.name, s.st_ino, s.st_size, s.st_ctime_ns) for e in found for s in [e.stat()]
                )
        except OSError as error:
            return str(error)

    def _read(self, name: str) -> Entry | str:
        """The entry of a folder, or why it is unusable."""
        if CIRCUIT_ID.fullmatch(name) is None:
            return f"{name!r} is no name for a circuit"
        path = self.root / name
        try:
            with (path / MANIFEST_NAME).open("rb") as file:
                text = file.read(_MAX_MANIFEST_BYTES + 1)
            manifest = Manifest.from_json(MANIFEST_NAME, text)
        except OSError as error:
            return f"{MANIFEST_NAME} cannot be read: {error.strerror}"
        except FormatError as error:
            return str(error)
        missing = [role for role in manifest.files if not (path / role).is_file()]
        if missing:
            return f"missing files: {', '.join(missing)}"
        return Entry(name, manifest, hashlib.sha256(text).digest(), path)

    def _sweep(self) -> None:
        """Remove what an interrupted `stage` left behind."""
        for path in self.root.glob(STAGING_PREFIX + "*"):
            try:
                if time.time() - path.stat().st_mtime > _SWEEP_AFTER_S:
                    shutil.rmtree(path)
            except FileNotFoundError:
                continue


def _altered(entry: Entry) -> list[str]:
    """The files of an entry that are not what their digests say."""
    altered: list[str] = []
    for role, expected in entry.manifest.files.items():
        try:
            found = sha256_of(entry.file(role))
        except OSError as error:
            found = error.strerror or str(error)
        if found != expected:
            altered.append(f"{role} was altered: expected {expected}, found {found}")
    return altered


def _state(found: Mapping[str, Entry | str]) -> CatalogueState:
    circuits = {name: entry for name, entry in found.items() if isinstance(entry, Entry)}
    digest = hashlib.sha256()
    for name in sorted(circuits):
        digest.update(name.encode() + b"\0" + circuits[name].manifest_sha256)
    return CatalogueState(
        revision=digest.digest(),
        circuits=circuits,
        broken={name: why for name, why in found.items() if isinstance(why, str)},
    )
