"""Files that are there in full or not at all: written under another name, synced, renamed."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

_CHUNK_BYTES: Final = 1 << 20


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_synced(path: Path, data: bytes | memoryview) -> None:
    """Write a new file and make its bytes durable; its name is not yet."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def create_synced(path: Path, write: Callable[[BinaryIO], None]) -> str:
    """Have a new file written, make its bytes durable, and return their SHA-256 in hex."""
    with path.open("xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    return sha256_of(path)


def copy_synced(source: Path, target: Path) -> str:
    """Copy a file to a new one, make its bytes durable, and return their SHA-256 in hex."""
    digest = hashlib.sha256()
    with source.open("rb") as reader, target.open("xb") as writer:
        while chunk := reader.read(_CHUNK_BYTES):
            digest.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def renaming(temporary: Path, final: Path) -> Iterator[None]:
    """Rename after the body, durably; without a trace of `temporary` if the body fails."""
    try:
        yield
        temporary.rename(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(final.parent)
