"""Stores that misbehave as a disk does: away for a while, or hanging."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from partita.scheduler.core.events import Restored
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import Change, StoreError


class FailingStore:
    """A store on a disk that can be away: every write fails while `away` is set."""

    def __init__(self, path: Path) -> None:
        self._store = SqliteStore(path)
        self.away = threading.Event()

    def open(self, now_s: int) -> Restored:
        return self._store.open(now_s)

    def apply(self, changes: Sequence[Change]) -> bool:
        if self.away.is_set():
            raise StoreError("the disk is away")
        return self._store.apply(changes)

    def scrub(self) -> None:
        self._store.scrub()

    def close(self) -> None:
        self._store.close()


class StallingStore:
    """A store whose writes wait, as on a disk that hangs, while `hangs` is set."""

    def __init__(self, path: Path) -> None:
        self._store = SqliteStore(path)
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.waits = threading.Event()

    def open(self, now_s: int) -> Restored:
        return self._store.open(now_s)

    def apply(self, changes: Sequence[Change]) -> bool:
        if not self.goes_on.is_set():
            self.waits.set()
            self.goes_on.wait()
        return self._store.apply(changes)

    def scrub(self) -> None:
        self._store.scrub()

    def close(self) -> None:
        self._store.close()
