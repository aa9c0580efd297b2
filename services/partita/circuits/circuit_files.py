"""Circuit files by digest, wherever on this machine they lie.

A prover knows circuits by their manifests and needs the files that those name. On the scheduler's
own machine they lie in the catalogue; elsewhere they are downloaded once into `circuits/.files/`.
A file that is received is visible only after its size and digest were checked.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.circuits.catalogue import Catalogue
from partita.circuits.container import map_file
from partita.circuits.durable import renaming
from partita.groth16.errors import FormatError

if TYPE_CHECKING:
    from types import TracebackType

_FOLDER: Final = ".files"
_TEMPORARY_PREFIX: Final = ".new-"


class CircuitFiles:
    """The circuit files of a data directory. Thread-safe.

    Args:
        root: `DATA_DIR/circuits`.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / _FOLDER
        self._catalogue = Catalogue(root)
        self._lock = threading.Lock()

    def path_of(self, sha256: str) -> Path | None:
        """Where the file of this digest (hex) lies, or None if it is not here."""
        received = self._folder / sha256
        if received.is_file():
            return received
        with self._lock:
            circuits = self._catalogue.scan().circuits
        for entry in circuits.values():
            for role, digest in entry.manifest.files.items():
                if digest == sha256:
                    return entry.file(role)
        return None

    def has(self, sha256: str) -> bool:
        """Whether the file of this digest is here."""
        return self.path_of(sha256) is not None

    def open(self, role: str, sha256: str) -> memoryview:
        """The bytes of a file, mapped, after its digest was compared once more.

        Args:
            role: what the file is, for errors.
            sha256: its digest in hex.

        Raises:
            FormatError: it is not here, or was altered.
        """
        path = self.path_of(sha256)
        if path is None:
            raise FormatError(role, f"no file with SHA-256 {sha256} is on this machine")
        data = map_file(path)
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise FormatError(
                role, f"{path} was altered: expected SHA-256 {sha256}, found {found}; add it again"
            )
        return data

    def receive(self, sha256: str, size_bytes: int) -> Receiving:
        """Take in a file piece by piece, for use in `with`; see `Receiving`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return Receiving(self._folder, sha256, size_bytes)


class Receiving:
    """A file on its way in; it exists only after `finish`.

    Args:
        folder: where it will lie.
        sha256: its digest in hex.
        size_bytes: its size.
    """

    def __init__(self, folder: Path, sha256: str, size_bytes: int) -> None:
        self._final = folder / sha256
        self._sha256 = sha256
        self._left_bytes = size_bytes
        self._digest = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=folder)
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> Receiving:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Take the next piece.

        Raises:
            FormatError: more bytes than the file has.
        """
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise FormatError(self._sha256, f"{-self._left_bytes} bytes more than announced")
        self._digest.update(chunk)
        self._file.write(chunk)

    def finish(self) -> Path:
        """Check and keep the file, durably; where it lies now.

        Raises:
            FormatError: bytes are missing, or the digest differs; nothing is kept.
        """
        if self._left_bytes:
            raise FormatError(self._sha256, f"cut off: {self._left_bytes} bytes are missing")
        found = self._digest.hexdigest()
        if found != self._sha256:
            raise FormatError(self._sha256, f"the bytes received have SHA-256 {found}")
        self._file.flush()
        os.fsync(self._file.fileno())
        with renaming(self._path, self._final):
            self._file.close()
        return self._final
