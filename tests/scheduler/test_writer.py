"""What was deleted is scrubbed in its time, and tried again after a failure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from partita.scheduler import writer
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import InputsDropped, StoreError
from partita.scheduler.writer import Writer
from tests.scheduler.test_sqlite import ACCEPTED, SECRET, everything


class ScrubbedStore(SqliteStore):
    """Tells when it was scrubbed, which fails a given number of times."""

    def __init__(self, path: Path, failures: int) -> None:
        super().__init__(path)
        self.failures = failures
        self.scrubbed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def scrub(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is away")
        super().scrub()
        self._loop.call_soon_threadsafe(self.scrubbed.set)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SCRUB_AFTER_S", 0.001)


@pytest.mark.parametrize("failures", [0, 2])
async def test_deleted_inputs_leave_the_disk_a_while_after_they_were_deleted(
    tmp_path: Path, failures: int
) -> None:
    path = tmp_path / "store.db"
    store = ScrubbedStore(path, failures)
    store.open(1000)
    saved: asyncio.Queue[int] = asyncio.Queue()
    broken: list[BaseException] = []
    writer = Writer(store, 1, saved.put_nowait, lambda _: None, broken.append)
    writer.put([ACCEPTED], 1)
    async with asyncio.timeout(30):
        await saved.get()
        assert SECRET in everything(path)
        writer.put([InputsDropped("j1"), ACCEPTED.job], 2)
        await saved.get()
        await store.scrubbed.wait()
    assert SECRET not in everything(path)
    assert await writer.close(1)
    assert not broken
    store.close()
