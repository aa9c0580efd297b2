"""Packed proving keys of this machine: made once, mapped by every prover, bounded on the disk.

    packed/<source sha256>.<layout version>.pk     a packed key (`packed_format`)
    packed/.<the same>.lock                        held while it is being made
    packed/.<the same>.new                         while it is being made

Packed keys are a cache: each can be made again from the circuit's own files, so a damaged one is
removed with a warning, and one that cannot be written costs time and nothing else. Several
processes share the folder. A file is held by a shared lock while it is in use; it is removed only
under an exclusive one. The time of its last use is its modification time.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.circuits.durable import renaming
from partita.circuits.errors import PackingError
from partita.circuits.packed_format import (
    HEADER_BYTES,
    LAYOUT_VERSION,
    ContentsDigest,
    PackedHeader,
    contents_digest,
    frame_section,
    key_of,
    sections_of,
)
from partita.groth16.errors import FormatError
from partita.groth16.keys import Query
from partita.groth16.native import check_points

if TYPE_CHECKING:
    from typing import BinaryIO

    from partita.circuits.key_source import KeySource
    from partita.groth16.keys import ProvingKey

DEFAULT_QUOTA_BYTES: Final = 64 << 30
_SUFFIX: Final = ".pk"
_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Told the bytes done and the bytes in all."""


def silent(done: int, total: int) -> None:
    """Tell nobody."""


class PackedKey:
    """A packed file in use. Its mapping lives as long as it or any view of a key made from it.

    Args:
        header: of the file.
        descriptor: of the file, under a shared lock; closed by `close`.
    """

    def __init__(self, header: PackedHeader, descriptor: int) -> None:
        self.header = header
        self._descriptor: int | None = descriptor
        self._view: memoryview | None = memoryview(
            mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        )

    @property
    def view(self) -> memoryview:
        """The bytes of the file."""
        if self._view is None:
            raise ValueError("the packed key was unmapped")
        return self._view

    def key(self) -> ProvingKey:
        """The key, its queries and matrices views of the file."""
        return key_of(self.header, self.view)

    def unmap(self) -> None:
        """Give the mapping up; the file stays in use, so that a later load finds it."""
        self._view = None

    def close(self) -> None:
        """End the use; a second call does nothing."""
        self._view = None
        if self._descriptor is not None:
            # The mapping holds the same open file, and so would hold the lock.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None


class PackedKeys:
    """The packed keys under one folder. Thread-safe; several processes may use the folder.

    Args:
        folder: `DATA_DIR/packed`; made when something is first packed.
        quota_bytes: what all packed keys together may take.
    """

    def __init__(self, folder: Path, quota_bytes: int = DEFAULT_QUOTA_BYTES) -> None:
        self.folder = folder
        self._quota_bytes = quota_bytes

    def path_of(self, source_sha256: str) -> Path:
        """Where the packed key of a source (hex) lies, if there is one."""
        return self.folder / f"{source_sha256}.{LAYOUT_VERSION}{_SUFFIX}"

    def find(self, source_sha256: str) -> PackedHeader | None:
        """The header of a packed key that is there; its contents are not read."""
        path = self.path_of(source_sha256)
        try:
            with path.open("rb") as file:
                header = PackedHeader.from_bytes(str(path), file.read(HEADER_BYTES))
        except (OSError, FormatError):
            return None
        return header if header.source_sha256.hex() == source_sha256 else None

    def open(self, source_sha256: str) -> PackedKey | None:
        """Take a packed key into use after comparing its digest; None if there is none.

        A damaged file is removed and logged, and counts as none.
        """
        path = self.path_of(source_sha256)
        descriptor = self._hold(path)
        if descriptor is None:
            return None
        try:
            packed = self._map(path, descriptor, source_sha256)
            found = contents_digest(packed.view)
            if found == packed.header.contents_sha256:
                return packed
            packed.unmap()
            what = f"SHA-256 {packed.header.contents_sha256.hex()} expected, {found.hex()} found"
            raise FormatError(str(path), what)
        except (OSError, FormatError) as error:
            _log.warning("a packed key is damaged and is removed: %s", error)
            with suppress(OSError):
                path.unlink(missing_ok=True)
            os.close(descriptor)
            return None

    def obtain(
        self, source_sha256: str, source: Callable[[], KeySource], progress: Progress = silent
    ) -> PackedKey:
        """Take a packed key into use, made from its source if it is not there yet.

        Only one process makes it; others wait and then find it.

        Args:
            source_sha256: as of `key_source.source_sha256`, hex.
            source: reads the source; called only if it is needed.
            progress: told the bytes written.

        Raises:
            InputError: what `source` raises, or a point is no point of its group.
            PackingError: the file cannot be written, or does not fit the quota.
        """
        packed = self.open(source_sha256)
        if packed is not None:
            return packed
        path = self.path_of(source_sha256)
        with self._making(path):
            packed = self.open(source_sha256)
            if packed is not None:
                return packed
            read = source()
            header = self._make(path, bytes.fromhex(source_sha256), read, progress)
            _log.info("packed a proving key: %s, %d bytes", path, header.size_bytes)
            descriptor = self._hold(path)
            if descriptor is None:
                raise PackingError(path, "was removed right after it was made")
            return self._map(path, descriptor, source_sha256)

    def discard(self, source_sha256: str) -> bool:
        """Remove a packed key unless somebody uses it; whether it is gone."""
        return _remove_idle(self.path_of(source_sha256))

    def _hold(self, path: Path) -> int | None:
        """Open a file under a shared lock and note its use; None if it is not there."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                with suppress(OSError):
                    os.utime(descriptor)
                return descriptor
        except OSError:  # it is being removed
            pass
        os.close(descriptor)
        return None

    def _map(self, path: Path, descriptor: int, source_sha256: str) -> PackedKey:
        header = PackedHeader.from_bytes(str(path), os.pread(descriptor, HEADER_BYTES, 0))
        if header.source_sha256.hex() != source_sha256:
            raise FormatError(str(path), f"was made from {header.source_sha256.hex()}")
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes != header.size_bytes:
            raise FormatError(str(path), f"has {size_bytes} bytes, not {header.size_bytes}")
        return PackedKey(header, descriptor)

    @contextmanager
    def _making(self, path: Path) -> Iterator[None]:
        """Be the only one who makes this file; waits for another."""
        lock = path.with_name(f".{path.name}.lock")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise PackingError(lock, error.strerror or str(error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make(
        self, path: Path, source_sha256: bytes, source: KeySource, progress: Progress
    ) -> PackedHeader:
        header = PackedHeader.of(source_sha256, source.frame)
        temporary = path.with_name(f".{path.name}.new")
        try:
            self._make_room(path, header.size_bytes)
            with renaming(temporary, path), temporary.open("wb") as file:
                # Refused now rather than after minutes.
                os.posix_fallocate(file.fileno(), 0, header.size_bytes)
                return _write(file, header, source, progress)
        except OSError as error:
            what = f"{error.strerror or error}: {header.size_bytes} bytes are needed"
            raise PackingError(path, what) from error

    def _make_room(self, path: Path, size_bytes: int) -> None:
        """Remove the files that were not used for longest until another fits the quota."""
        if size_bytes > self._quota_bytes:
            raise PackingError(
                path, f"needs {size_bytes} bytes, all packed keys may take {self._quota_bytes}"
            )
        _sweep(self.folder)
        found = sorted(self._stored(), key=lambda item: item[1].st_mtime_ns)
        used_bytes = sum(stat.st_size for _, stat in found)
        for old, stat in found:
            if used_bytes + size_bytes <= self._quota_bytes:
                return
            if _remove_idle(old):
                _log.info("removed the packed key that was idle for longest: %s", old)
                used_bytes -= stat.st_size
        if used_bytes + size_bytes > self._quota_bytes:
            raise PackingError(
                path,
                f"needs {size_bytes} bytes, but keys in use take {used_bytes} of the "
                f"{self._quota_bytes} that all packed keys may take",
            )

    def _stored(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with suppress(FileNotFoundError):
                yield path, path.stat()


def _remove_idle(path: Path) -> bool:
    """Remove a packed key unless somebody uses it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _sweep(folder: Path) -> None:
    """Remove what makers that died left behind; one that lives holds its lock."""
    for path in folder.glob(".*.new"):
        with suppress(OSError), path.with_suffix(".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)


def _write(
    file: BinaryIO, header: PackedHeader, source: KeySource, progress: Progress
) -> PackedHeader:
    """Fill a file of the right size; returns the header with its digest."""
    frame, digest, at = source.frame, ContentsDigest(), HEADER_BYTES
    check_points(frame.curve, "g1", frame.ic, "ic")

    def put(data: bytes | memoryview) -> None:
        nonlocal at
        file.write(data)
        digest.update(data)
        at += len(data)
        progress(at, header.size_bytes)

    queries = {f"query.{query.value}": query for query in Query}
    file.seek(HEADER_BYTES)
    for name, extent in sections_of(header).items():
        put(bytes(extent.offset - at))
        if name in queries:
            for chunk in source.chunks(queries[name]):
                put(chunk)
        else:
            put(frame_section(frame, name))
        if at != extent.end:
            raise FormatError(name, f"{at - extent.offset} bytes, not {extent.size_bytes}")
    header = header.with_contents(digest.digest())
    file.seek(0)
    file.write(header.to_bytes())
    file.flush()
    os.fsync(file.fileno())
    return header
