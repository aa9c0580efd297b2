"""What `doctor` says of addresses: free, ours, or whose."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita.cli.doctor_ports import check_port, owner_of_port, running_programs
from partita.cli.doctor_report import Check, Status

PROC = Path("/proc")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def look(address: str, running: dict[str, int] | None = None) -> Check:
    return check_port("listen", address, running or {}, PROC)


def test_a_port_in_use_names_the_process(taken: int) -> None:
    check = look(f"127.0.0.1:{taken}")
    assert check.status is Status.FAIL
    assert f"pid {os.getpid()} (" in check.found
    assert owner_of_port(PROC, taken).startswith(f"pid {os.getpid()} (")


def test_a_port_of_our_own_running_program_is_right(taken: int) -> None:
    address = f"127.0.0.1:{taken}"
    check = look(address, {address: 77})
    assert check.status is Status.OK
    assert "pid 77" in check.found


def test_another_port_of_our_own_running_program_is_right_too(taken: int) -> None:
    assert look(f"127.0.0.1:{taken}", {"127.0.0.1:1": os.getpid()}).status is Status.OK
    assert look(f"127.0.0.1:{taken}", {"127.0.0.1:1": os.getppid()}).status is Status.FAIL


def test_a_port_that_has_become_free_is_free(taken: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert look(f"127.0.0.1:{port}").status is Status.OK
    assert look("127.0.0.1:0").status is Status.OK


@pytest.mark.parametrize(
    "address", ["nonsense", "127.0.0.1:99999", "192.0.2.1:1", "nohost.invalid:1"]
)
def test_what_cannot_be_listened_on_fails(address: str) -> None:
    assert look(address).status is Status.FAIL


def test_a_socket_is_in_use_only_while_somebody_serves_it(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    assert look(f"unix://{path}").status is Status.OK
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert look(f"unix://{path}").status is Status.FAIL
    assert look(f"unix://{path}").status is Status.OK
    assert look(f"unix://{tmp_path}/none/s.sock").status is Status.FAIL


def test_only_programs_that_live_are_running(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    run = tmp_path / "run"
    run.mkdir()
    mine = {"pid": os.getpid(), "listen": "127.0.0.1:1", "prover_listen": "127.0.0.1:2"}
    (run / "scheduler.json").write_text(json.dumps(mine))
    gone = {"pid": ended.pid, "address": "127.0.0.1:3", "prover_id": "gone"}
    (run / "gone.json").write_text(json.dumps(gone))
    (run / "broken.json").write_text("{")
    assert running_programs(tmp_path) == {"127.0.0.1:1": os.getpid(), "127.0.0.1:2": os.getpid()}


@pytest.mark.parametrize("pid", [10**30, float("inf"), -1, 0])
def test_what_can_be_no_process_does_not_run(tmp_path: Path, pid: float) -> None:
    (tmp_path / "run").mkdir()
    content = json.dumps({"pid": pid, "address": "127.0.0.1:3"})
    (tmp_path / "run" / "odd.json").write_text(content)
    assert running_programs(tmp_path) == {}


def test_a_process_is_named_by_its_module_or_its_program(tmp_path: Path) -> None:
    rows = "head\n 0: 0100007F:2666 00000000:0000 0A 0:0 0:0 0 0 0 4242 1\n"
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(rows)
    for pid, command in ((7, b"/usr/bin/python3\0-m\0partita.scheduler\0"), (9, b"/bin/other\0")):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "cmdline").write_bytes(command)
    (tmp_path / "7" / "fd" / "3").symlink_to("socket:[4242]")
    assert owner_of_port(tmp_path, 0x2666) == "pid 7 (partita.scheduler)"
    assert owner_of_port(tmp_path, 1) == ""
    (tmp_path / "7" / "fd" / "3").unlink()
    (tmp_path / "9" / "fd" / "3").symlink_to("socket:[4242]")
    assert owner_of_port(tmp_path, 0x2666) == "pid 9 (other)"
