"""A blob is kept exactly as long as somebody needs it, and is what its digest says."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from partita.scheduler import blobs as blobs_module
from partita.scheduler.blobs import (
    BlobLimits,
    BlobMissingError,
    BlobRejectedError,
    BlobStore,
    IngestFullError,
)
from partita.scheduler.core.model import BlobRef

DATA = b"some input"
REF = BlobRef(hashlib.sha256(DATA).digest(), len(DATA))
OTHER = b"another"
OTHER_REF = BlobRef(hashlib.sha256(OTHER).digest(), len(OTHER))
HOUR_NS = 3_600 * 10**9


def limits(**changes: int) -> BlobLimits:
    values = {
        "max_blob_bytes": 100,
        "quota_bytes": 1000,
        "max_uploads": 2,
        "max_waiting": 1,
        "ticket_ns": HOUR_NS,
        **changes,
    }
    return BlobLimits(**values)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_stored_blob_is_a_private_file_named_by_its_digest(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs", limits())
    kept_until_ns = await blobs.put(REF, chunks(DATA[:3], b"", DATA[3:]))
    path = tmp_path / "blobs" / REF.sha256.hex()
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_until_ns == path.stat().st_mtime_ns + HOUR_NS
    assert [part async for part in blobs.read(REF.sha256, 5)] == [DATA[5:]]
    blobs.close()


async def test_a_blob_goes_when_its_ticket_and_its_last_job_are_gone(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits(ticket_ns=0))
    await blobs.put(REF, chunks(DATA))
    blobs.hold("a", [(REF, None)])
    blobs.hold("b", [(REF, None), (REF, None)])
    blobs.expire()
    blobs.drop("a")
    blobs.drop("a")
    assert blobs.has(REF.sha256)
    blobs.drop("b")
    assert not blobs.has(REF.sha256)
    assert names(tmp_path) == []
    blobs.close()


async def test_a_live_ticket_keeps_a_blob_without_a_job(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits())
    await blobs.put(REF, chunks(DATA))
    blobs.hold("a", [(REF, None)])
    blobs.drop("a")
    blobs.expire()
    assert blobs.has(REF.sha256)
    os.utime(blobs.path(REF.sha256), ns=(0, 0))
    again = BlobStore(tmp_path, limits())
    again.expire()
    assert not again.has(REF.sha256), "the ticket is the time of the file"
    blobs.close()
    again.close()


async def test_an_inline_input_is_found_by_its_digest_while_a_job_holds_it(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits())
    blobs.hold("a", [(REF, DATA)])
    assert blobs.size(REF.sha256) == len(DATA)
    assert blobs.is_input(REF.sha256)
    assert [part async for part in blobs.read(REF.sha256, 0)] == [DATA]
    assert blobs.renew(REF.sha256) is None, "a row gives no ticket"
    blobs.drop("a")
    assert blobs.size(REF.sha256) is None
    with pytest.raises(BlobMissingError):
        _ = [part async for part in blobs.read(REF.sha256, 0)]
    blobs.close()


async def test_a_blob_that_vanished_from_the_disk_is_missing(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits())
    await blobs.put(REF, chunks(DATA))
    blobs.path(REF.sha256).unlink()
    assert not blobs.has(REF.sha256)
    with pytest.raises(BlobMissingError):
        await blobs.inspect(REF, bytes)
    assert blobs.size(REF.sha256) is None
    blobs.close()


async def test_a_look_at_a_blob_sees_its_bytes(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits())
    await blobs.put(REF, chunks(DATA))
    assert await blobs.inspect(REF, bytes) == DATA
    with pytest.raises(BlobMissingError):
        await blobs.inspect(BlobRef(REF.sha256, 5), bytes)
    blobs.close()


async def test_what_is_over_the_quota_is_refused_before_it_is_read(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits(quota_bytes=15))
    await blobs.put(REF, chunks(DATA))
    with pytest.raises(IngestFullError, match="10 of 15 bytes"):
        await blobs.put(BlobRef(b"x" * 32, 6), _never())
    with pytest.raises(BlobRejectedError, match="largest blob is 100"):
        await blobs.put(BlobRef(b"x" * 32, 101), _never())
    blobs.close()


async def _never() -> AsyncIterator[bytes]:
    while True:
        yield pytest.fail("nothing may be read")


async def test_a_reader_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield DATA[:3]
        raise ConnectionError

    blobs = BlobStore(tmp_path, limits(quota_bytes=len(DATA)))
    with pytest.raises(ConnectionError):
        await blobs.put(REF, broken())
    assert names(tmp_path) == []
    await blobs.put(REF, chunks(DATA))
    blobs.close()


@pytest.mark.parametrize("step", ["_create", "_publish"])
async def test_an_upload_cancelled_while_the_disk_works_leaves_nothing_open_or_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real, loop = getattr(blobs_module, step), asyncio.get_running_loop()

    def cancelled_meanwhile(*arguments: object) -> object:
        result = real(*arguments)
        loop.call_soon_threadsafe(upload.cancel)
        return result

    blobs = BlobStore(tmp_path, limits())
    await blobs.put(OTHER_REF, chunks(OTHER))  # its thread has come to be
    monkeypatch.setattr(blobs_module, step, cancelled_meanwhile)
    before = open_files()
    upload = asyncio.create_task(blobs.put(REF, chunks(DATA)))
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert open_files() == before
    kept = [OTHER_REF, REF] if step == "_publish" else [OTHER_REF]
    assert names(tmp_path) == sorted(ref.sha256.hex() for ref in kept)
    assert blobs.stored_bytes == sum(ref.size_bytes for ref in kept)
    blobs.close()


async def test_a_second_cancel_does_not_close_a_file_that_a_thread_still_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, loop = blobs_module._append, asyncio.get_running_loop()
    cancelled, still_open = threading.Event(), []

    def cancel_twice() -> None:
        upload.cancel()
        loop.call_soon(upload.cancel)
        loop.call_soon(loop.call_soon, cancelled.set)

    def slow(descriptor: int, *arguments: Any) -> None:
        loop.call_soon_threadsafe(cancel_twice)
        assert cancelled.wait(30)
        still_open.append(os.fstat(descriptor))
        real(descriptor, *arguments)

    monkeypatch.setattr(blobs_module, "_append", slow)
    blobs = BlobStore(tmp_path, limits())
    upload = asyncio.create_task(blobs.put(REF, chunks(DATA)))
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert len(still_open) == 1
    assert names(tmp_path) == []
    blobs.close()


async def test_a_blob_whose_directory_the_disk_refuses_to_save_is_still_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(temporary: Path, path: Path) -> None:
        temporary.rename(path)
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(blobs_module, "_publish", refused)
    blobs = BlobStore(tmp_path, limits())
    with pytest.raises(IngestFullError, match="the disk is broken"):
        await blobs.put(REF, chunks(DATA))
    assert names(tmp_path) == [REF.sha256.hex()]
    assert blobs.stored_bytes == len(DATA)
    blobs.close()


async def test_a_reader_cancelled_while_the_file_is_opened_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    blobs = BlobStore(tmp_path, limits())
    await blobs.put(REF, chunks(DATA))
    before = open_files()
    reading = asyncio.ensure_future(anext(blobs.read(REF.sha256, 0)))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert open_files() == before
    blobs.close()


async def test_uploads_beyond_the_slots_wait_and_beyond_that_are_refused(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path, limits())
    entered = 0
    two_run = asyncio.Event()
    leave = asyncio.Event()

    async def upload() -> None:
        nonlocal entered
        async with blobs.upload_permit():
            entered += 1
            if entered == 2:
                two_run.set()
            await leave.wait()

    tasks = [asyncio.create_task(upload()) for _ in range(3)]
    await two_run.wait()
    with pytest.raises(IngestFullError, match="2 uploads run and 1 wait"):
        await upload()
    assert entered == 2
    leave.set()
    await asyncio.gather(*tasks)
    assert entered == 3
    blobs.close()


def test_half_written_files_go_at_boot_and_strangers_stay(tmp_path: Path) -> None:
    (tmp_path / f"{REF.sha256.hex()}.1.part").write_bytes(b"half")
    (tmp_path / "README").write_bytes(b"mine")
    (tmp_path / REF.sha256.hex()).write_bytes(DATA)
    blobs = BlobStore(tmp_path, limits())
    assert names(tmp_path) == sorted(["README", REF.sha256.hex()])
    assert blobs.size(REF.sha256) == len(DATA)
    blobs.close()
