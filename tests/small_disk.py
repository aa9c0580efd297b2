"""Small disks for tests: full ones, read-only ones. Each is a tmpfs, which takes root to mount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(where: Path, size_bytes: int) -> Iterator[None]:
    """Mount an empty disk of that size over a folder, which is made if it is not there."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    where.mkdir(parents=True, exist_ok=True)
    options = f"size={size_bytes},mode=700"
    refused = _refused("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(where))
    if refused:
        pytest.skip(f"mounting a small tmpfs is not allowed: {refused}")
    try:
        yield
    finally:
        refused = _refused("umount", "--lazy", str(where))
        assert not refused, refused


@contextmanager
def read_only(where: Path) -> Iterator[None]:
    """Let a small disk be read-only for a while."""
    for mode in ("ro", "rw"):
        refused = _refused("mount", "-o", f"remount,{mode}", str(where))
        assert not refused, refused
        if mode == "ro":
            yield


@contextmanager
def filled(where: Path) -> Iterator[None]:
    """Fill the disk under a folder to the last byte."""
    path = where / "filler"
    with path.open("wb", buffering=0) as file:
        for size_bytes in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size_bytes))
        with pytest.raises(OSError, match="No space left"):
            file.write(b"x")
    try:
        yield
    finally:
        path.unlink()


def _refused(*command: str) -> str:
    """Run a command; return why it failed, or nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{' '.join(command)}: {done.stderr.strip()}" if done.returncode else ""
