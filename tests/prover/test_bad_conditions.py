"""A prover that cannot start here says why in one line and what to change, and exits with 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_disk import filled, read_only, small_disk


def refused_start(data_dir: Path, **settings: str) -> str:
    """Start a prover that must be refused, and return what it says."""
    values = {
        "data_dir": str(data_dir),
        "listen": "127.0.0.1:0",
        "schedulers": '["127.0.0.1:1"]',
        "backend": "reference",
        **settings,
    }
    variables = {f"PARTITA_PROVER__{key.upper()}": value for key, value in values.items()}
    done = subprocess.run(
        [sys.executable, "-m", "partita.prover"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    return line


def test_a_read_only_data_directory_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, 1 << 20), read_only(disk):
        said = refused_start(disk)
    assert f"data_dir = {disk}" in said
    assert "Read-only file system" in said
    assert "make it writable" in said


def test_a_full_disk_at_the_start_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, 1 << 20):
        with filled(disk):
            said = refused_start(disk)
        assert list((disk / "run").iterdir()) == []
    assert f"data_dir = {disk}" in said
    assert "No space left" in said
    assert "make room" in said


@pytest.mark.parametrize("key", ["listen", "metrics_listen"])
def test_a_taken_address_is_named(tmp_path: Path, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        address = f"127.0.0.1:{owner.getsockname()[1]}"
        assert address in refused_start(tmp_path, **{key: address})
    assert not list(tmp_path.glob("run/*"))
