"""Blobs: inputs as files named by their SHA-256, and who still needs them.

A blob is written as it is read, hashed on the way, fsynced, renamed into place, its directory
fsynced; only then does anybody hear of it. Files are 0600: inputs are secrets. A blob lives while
a job refers to it or its ticket runs; the ticket is the file's modification time plus a fixed
span, so it outlives a restart. Inline inputs live in the store's rows; here they are only looked
up in memory, so that equal content is one blob however it came.

Bookkeeping happens on the event loop's thread; bytes are read, written and hashed in threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from partita.scheduler.core.model import BlobRef
from partita.service import logs

DIGEST_BYTES = 32
CHUNK_BYTES = 1 << 20

T = TypeVar("T")

_log = logs.get("blobs")


class BlobError(Exception):
    """Base of what can go wrong with a blob; never raised itself."""


class BlobRejectedError(BlobError):
    """The bytes are not what the header says; nothing was kept."""


class BlobMissingError(BlobError):
    """These digests are not here.

    Args:
        digests: the missing ones.
    """

    def __init__(self, digests: Iterable[bytes]) -> None:
        self.digests = tuple(digests)
        super().__init__(f"{len(self.digests)} blobs are missing; upload them, then repeat")


class IngestFullError(BlobError):
    """Too many uploads, or no room for this one; a later try can help."""


@dataclass(frozen=True, slots=True)
class BlobLimits:
    """Bounds of what clients may store."""

    max_blob_bytes: int
    quota_bytes: int
    max_uploads: int
    max_waiting: int
    ticket_ns: int


@dataclass(slots=True)
class _Inline:
    data: bytes
    jobs: set[str] = field(default_factory=set)


class UploadPermit:
    """The upload slots: taken before the first byte is read, so that the rest stays at the client.

    Args:
        slots: uploads that are read at the same time.
        max_waiting: uploads that may wait for a slot.
    """

    def __init__(self, slots: int, max_waiting: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._slots = slots
        self._max_waiting = max_waiting
        self._waiting = 0

    async def __aenter__(self) -> None:
        if self._free.locked() and self._waiting >= self._max_waiting:
            raise IngestFullError(
                f"{self._slots} uploads run and {self._waiting} wait; try again later"
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._free.release()


class BlobStore:
    """The blobs of one data directory.

    Args:
        directory: where they lie; made if it is not there.
        limits: bounds.
    """

    def __init__(self, directory: Path, limits: BlobLimits) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._limits = limits
        self._sizes: dict[bytes, int] = {}
        self._jobs: dict[bytes, set[str]] = {}
        self._inputs: dict[str, frozenset[bytes]] = {}
        self._inline: dict[bytes, _Inline] = {}
        self._ticket_ns: dict[bytes, int] = {}
        self._reserved_bytes = 0
        self.received_bytes = 0
        """Bytes of uploads since the start, those that failed included."""
        self._uploads = UploadPermit(limits.max_uploads, limits.max_waiting)
        self._serial = 0
        self._threads = ThreadPoolExecutor(limits.max_uploads, thread_name_prefix="blobs")
        self._scan()

    def _scan(self) -> None:
        for path in self._directory.iterdir():
            if path.suffix == ".part":
                path.unlink()
                continue
            try:
                digest = bytes.fromhex(path.name)
            except ValueError:
                continue
            status = path.stat()
            self._sizes[digest] = status.st_size
            self._ticket_ns[digest] = status.st_mtime_ns + self._limits.ticket_ns

    @property
    def stored_bytes(self) -> int:
        """Bytes of all blobs that are here."""
        return sum(self._sizes.values())

    def path(self, digest: bytes) -> Path:
        """Return where a blob's file is or would be."""
        return self._directory / digest.hex()

    def size(self, digest: bytes) -> int | None:
        """Return the size of a blob in bytes, or None if it is not here."""
        size = self._sizes.get(digest)
        if size is None and digest in self._inline:
            return len(self._inline[digest].data)
        return size

    def has(self, digest: bytes) -> bool:
        """Tell whether a blob is here, its file looked for on the disk."""
        return digest in self._inline or (digest in self._sizes and self.path(digest).exists())

    def inline(self, digest: bytes) -> bytes | None:
        """Return an input that lives in a job's row, or None."""
        entry = self._inline.get(digest)
        return None if entry is None else entry.data

    def is_input(self, digest: bytes) -> bool:
        """Tell whether a job refers to it: only then may a prover read it."""
        return digest in self._jobs or digest in self._inline

    def renew(self, digest: bytes) -> int | None:
        """Start the ticket of a file anew; return its end in wall nanoseconds, None if missing.

        Inputs that live only in a row have no ticket and count as missing.
        """
        if digest not in self._sizes:
            return None
        now_ns = time.time_ns()
        try:
            os.utime(self.path(digest), ns=(now_ns, now_ns))
        except FileNotFoundError:
            self._forget(digest)
            return None
        self._ticket_ns[digest] = now_ns + self._limits.ticket_ns
        return self._ticket_ns[digest]

    def hold(self, job_id: str, inputs: Iterable[tuple[BlobRef, bytes | None]]) -> None:
        """Keep the inputs of a job until `drop`.

        Args:
            job_id: the job.
            inputs: each input with its bytes where they live in the job's row.
        """
        digests = set()
        for ref, inline in inputs:
            digests.add(ref.sha256)
            if inline is None:
                self._jobs.setdefault(ref.sha256, set()).add(job_id)
            else:
                self._inline.setdefault(ref.sha256, _Inline(inline)).jobs.add(job_id)
        self._inputs[job_id] = frozenset(digests)

    def drop(self, job_id: str) -> None:
        """Let go of the inputs of a job and delete what nothing else names."""
        for digest in self._inputs.pop(job_id, ()):
            users = self._jobs.get(digest)
            if users is not None:
                users.discard(job_id)
                if not users:
                    del self._jobs[digest]
            entry = self._inline.get(digest)
            if entry is not None:
                entry.jobs.discard(job_id)
                if not entry.jobs:
                    del self._inline[digest]
            self._expire(digest, time.time_ns())

    def expire(self) -> None:
        """Delete every blob that no job refers to and whose ticket is over."""
        now_ns = time.time_ns()
        for digest in list(self._sizes):
            self._expire(digest, now_ns)

    def _expire(self, digest: bytes, now_ns: int) -> None:
        if digest in self._jobs or digest not in self._sizes:
            return
        if self._ticket_ns.get(digest, 0) <= now_ns:
            with suppress(FileNotFoundError):
                self.path(digest).unlink()
            self._forget(digest)

    def _forget(self, digest: bytes) -> None:
        self._sizes.pop(digest, None)
        self._ticket_ns.pop(digest, None)

    def upload_permit(self) -> UploadPermit:
        """Return one of the upload slots, for use in `async with` around the first read."""
        return self._uploads

    async def put(self, ref: BlobRef, chunks: AsyncIterator[bytes]) -> int:
        """Store a blob from its chunks; return the end of its ticket in wall nanoseconds.

        Raises:
            BlobRejectedError: too large, another size, another digest.
            IngestFullError: no room.
        """
        if ref.size_bytes > self._limits.max_blob_bytes:
            raise BlobRejectedError(
                f"size_bytes = {ref.size_bytes}: the largest blob is {self._limits.max_blob_bytes}"
            )
        stored = self.stored_bytes + self._reserved_bytes
        if stored + ref.size_bytes > self._limits.quota_bytes:
            raise IngestFullError(
                f"{stored} of {self._limits.quota_bytes} bytes for blobs are in use; "
                f"{ref.size_bytes} more do not fit now"
            )
        self._reserved_bytes += ref.size_bytes
        self._serial += 1
        temporary = self._directory / f"{ref.sha256.hex()}.{self._serial}.part"
        try:
            await self._write(ref, chunks, temporary)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            self._reserved_bytes -= ref.size_bytes
        kept_until_ns = self._take_in(ref)
        if kept_until_ns is None:
            raise IngestFullError(f"blob {ref.sha256.hex()} was deleted while it was stored")
        return kept_until_ns

    def _take_in(self, ref: BlobRef) -> int | None:
        """Know a blob that has its name on the disk; returns its ticket as `renew`."""
        self._sizes[ref.sha256] = ref.size_bytes
        return self.renew(ref.sha256)

    async def _write(self, ref: BlobRef, chunks: AsyncIterator[bytes], temporary: Path) -> None:
        digest = hashlib.sha256()
        received = 0
        descriptor = await self._on_disk(_create, temporary, left=os.close)
        try:
            async for chunk in chunks:
                received += len(chunk)
                self.received_bytes += len(chunk)
                if received > ref.size_bytes:
                    raise BlobRejectedError(
                        f"size_bytes = {ref.size_bytes}: more bytes came than announced"
                    )
                await self._on_disk(_append, descriptor, digest, chunk)
            if received != ref.size_bytes:
                raise BlobRejectedError(
                    f"size_bytes = {ref.size_bytes}: the upload ended after {received} bytes"
                )
            if digest.digest() != ref.sha256:
                raise BlobRejectedError(
                    f"sha256 = {ref.sha256.hex()}: the bytes have {digest.hexdigest()}"
                )
            await self._on_disk(os.fsync, descriptor)
        finally:
            os.close(descriptor)
        path = self.path(ref.sha256)
        try:
            await self._on_disk(_publish, temporary, path)
        except BaseException:
            if path.exists():  # it has its name, though its caller is gone or the disk refused more
                self._take_in(ref)
            raise

    async def _on_disk(
        self, do: Callable[..., T], *arguments: object, left: Callable[[T], object] | None = None
    ) -> T:
        """Run one disk operation in a thread, as `_in_thread`.

        Raises:
            IngestFullError: the disk refused it.
        """
        try:
            return await self._in_thread(do, *arguments, left=left)
        except OSError as error:
            _log.error("blobs.refused", directory=str(self._directory), error=error.strerror)
            raise IngestFullError(
                f"the blob cannot be written: {error.strerror}; upload it again once the operator "
                "has made room under blobs/"
            ) from error

    async def _in_thread(
        self, do: Callable[..., T], *arguments: object, left: Callable[[T], object] | None = None
    ) -> T:
        """Run `do` in a thread; it has ended when this returns, even if the caller is cancelled.

        So nobody closes a file that a thread still uses.

        Args:
            do: what to run.
            arguments: for it.
            left: told the result that a cancelled caller left behind.
        """
        running = asyncio.get_running_loop().run_in_executor(self._threads, do, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running})
            if left is not None and running.exception() is None:
                left(running.result())
            raise

    async def read(self, digest: bytes, offset: int) -> AsyncIterator[bytes]:
        """Yield a blob in chunks of at most 1 MiB, from `offset`.

        Raises:
            BlobMissingError: it is not here, or has just been deleted.
        """
        inline = self.inline(digest)
        if inline is not None:
            yield inline[offset:]
            return
        if digest not in self._sizes:
            raise BlobMissingError([digest])
        async for chunk in self.read_file(self.path(digest), offset, digest):
            yield chunk

    async def read_file(self, path: Path, offset: int, digest: bytes) -> AsyncIterator[bytes]:
        """Yield a file in chunks of at most 1 MiB, from `offset`.

        Raises:
            BlobMissingError: it cannot be read; `digest` names it.
        """
        try:
            descriptor = await self._in_thread(
                os.open, path, os.O_RDONLY | os.O_CLOEXEC, left=os.close
            )
        except OSError as error:
            raise BlobMissingError([digest]) from error
        try:
            while chunk := await self._in_thread(os.pread, descriptor, CHUNK_BYTES, offset):
                offset += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)

    async def inspect(self, ref: BlobRef, look: Callable[[bytes | memoryview], T]) -> T:
        """Return what `look` makes of an input's bytes, in a thread; a file is mapped, not read.

        Args:
            ref: the input.
            look: must not keep a view of the bytes.

        Raises:
            BlobMissingError: it is not here in that size.
        """
        inline = self.inline(ref.sha256)
        if inline is None and self._sizes.get(ref.sha256) != ref.size_bytes:
            raise BlobMissingError([ref.sha256])
        if inline is not None:
            return await self._in_thread(look, inline)
        try:
            return await self._in_thread(_look_at, self.path(ref.sha256), look, ref)
        except BlobMissingError:
            self._forget(ref.sha256)
            raise

    def close(self) -> None:
        """Wait for running reads and writes, then let go of the threads."""
        self._threads.shutdown()


def _create(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)


def _look_at(path: Path, look: Callable[[bytes | memoryview], T], ref: BlobRef) -> T:
    if ref.size_bytes == 0:
        return look(b"")
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BlobMissingError([ref.sha256]) from error
    # The mapping goes with its last view, which may be in the traceback of an error.
    return look(memoryview(mapped))


def _append(descriptor: int, digest: hashlib._Hash, chunk: bytes) -> None:
    digest.update(chunk)
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]


def _publish(temporary: Path, path: Path) -> None:
    temporary.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
