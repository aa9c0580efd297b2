"""What the engine asks of a durable store, and the errors of one.

A store keeps tables of current state. `open` reads them once; `apply` makes a batch of changes
durable in one transaction, in order. It runs in one thread at a time and never decides anything.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from partita.scheduler.core.events import Restored
from partita.scheduler.core.records import Record


class StoreError(Exception):
    """The store could not do it now; nothing of the batch is durable, and it may be repeated."""


class StoreUnreadableError(Exception):
    """The store's content cannot be used by this version; the message says what to do."""


class DataDirInUseError(Exception):
    """Another scheduler owns the data directory."""


@dataclass(frozen=True, slots=True)
class InputsDropped:
    """Not a record of the core: the inline inputs of a job are secrets that nobody needs now."""

    job_id: str


Change = Record | InputsDropped


class Store(Protocol):
    """Durable tables of current state."""

    def open(self, now_s: int) -> Restored:
        """Read everything and commit a new epoch, greater than any before.

        Args:
            now_s: wall time in seconds; the epoch is at least that.

        Raises:
            StoreError: it cannot be opened now.
            StoreUnreadableError: its schema is newer than this program.
        """
        ...

    def apply(self, changes: Sequence[Change]) -> bool:
        """Make all changes durable, in order, or none; tell whether inputs were deleted.

        Raises:
            StoreError: none is durable.
        """
        ...

    def scrub(self) -> None:
        """Leave no trace of inputs that were deleted; costs as much as several `apply`.

        Raises:
            StoreError: it cannot be done now.
        """
        ...

    def close(self) -> None:
        """Let go of it; idempotent."""
        ...


class DataDirLock:
    """The exclusive right to a data directory, held until `release` or the process's end."""

    def __init__(self, data_dir: Path) -> None:
        """Take the lock.

        Raises:
            DataDirInUseError: another process holds it.
            OSError: the directory cannot be written.
        """
        path = data_dir / "scheduler.lock"
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataDirInUseError(
                f"{data_dir} is in use by another scheduler (process {owner or 'unknown'}): "
                "stop it, or choose another data_dir"
            ) from error
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._descriptor)
            raise OSError(error.errno, error.strerror, str(path)) from error

    def release(self) -> None:
        """Give the right back."""
        with suppress(OSError):
            os.close(self._descriptor)
