"""A new entry of the catalogue while its files are gathered, and the step that makes it visible."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.circuits.durable import copy_synced, create_synced, sync_directory, write_synced
from partita.circuits.errors import (
    BrokenCircuitError,
    CatalogueError,
    CircuitExistsError,
    UnknownCircuitError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import BinaryIO

    from partita.circuits.catalogue import Catalogue, Entry
    from partita.circuits.manifest import Manifest

MANIFEST_NAME: Final = "manifest.json"
STAGING_PREFIX: Final = ".new-"


class Staging:
    """A new entry while its files are gathered; nothing of it is visible before `publish`.

    Args:
        catalogue: where it will go.
        circuit_id: its name.
    """

    def __init__(self, catalogue: Catalogue, circuit_id: str) -> None:
        self.circuit_id = circuit_id
        self.files: dict[str, str] = {}
        self._catalogue = catalogue
        self._folder = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=catalogue.root))
        self._path = self._folder / circuit_id
        self._path.mkdir()

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def copy(self, role: str, source: Path) -> Path:
        """Copy a file in; what is checked afterwards is the copy that is kept."""
        self.files[role] = copy_synced(source, self._path / role)
        return self._path / role

    def write(self, role: str, data: bytes) -> Path:
        """Write a file."""
        write_synced(self._path / role, data)
        self.files[role] = hashlib.sha256(data).hexdigest()
        return self._path / role

    def create(self, role: str, write: Callable[[BinaryIO], None]) -> Path:
        """Have a file written piece by piece."""
        self.files[role] = create_synced(self._path / role, write)
        return self._path / role

    def publish(self, manifest: Manifest) -> Entry:
        """Make the entry visible, durably.

        Args:
            manifest: names exactly the files that were put in.

        Returns:
            The entry; the one that is there already if its manifest is the same and its files
            are intact (damaged ones are replaced).

        Raises:
            CircuitExistsError: the name is bound to another manifest.
            CatalogueError: the manifest names other files.
        """
        if dict(manifest.files) != self.files:
            raise CatalogueError(
                f"the manifest of {self.circuit_id!r} names other files than were put in"
            )
        write_synced(self._path / MANIFEST_NAME, manifest.to_json())
        sync_directory(self._path)
        final = self._catalogue.root / self.circuit_id
        while True:
            try:
                self._path.rename(final)
            except OSError:
                if not final.is_dir():
                    raise
            else:
                sync_directory(self._catalogue.root)
                return self._catalogue.show(self.circuit_id)
            kept = self._kept(manifest)
            if kept is not None:
                return kept

    def _kept(self, manifest: Manifest) -> Entry | None:
        """The entry that holds the name, or None after a damaged one was removed."""
        try:
            there = self._catalogue.show(self.circuit_id)
            if there.manifest_sha256 != manifest.sha256():
                raise CircuitExistsError(
                    self.circuit_id, there.manifest_sha256.hex(), manifest.sha256().hex()
                )
            if not self._catalogue.verify(self.circuit_id):
                return there
            self._catalogue.remove(self.circuit_id)
        except UnknownCircuitError:
            return None
        except BrokenCircuitError:
            self._catalogue.remove(self.circuit_id)
        return None
