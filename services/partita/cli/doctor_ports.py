"""Checks of the addresses that the programs listen on: free, ours, or whose."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from partita.cli.doctor_report import Check, attempt, fail, ok

if TYPE_CHECKING:
    from partita.service.config import ProgramConfig

_LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def port_checks(configs: Iterable[ProgramConfig], data_dir: Path, proc: Path) -> list[Check]:
    """Look at each address that the programs' configurations want to listen on.

    Args:
        configs: of the programs.
        data_dir: of the programs that run already.
        proc: the process file system.
    """
    running = running_programs(data_dir)
    ports = {
        f"{key} of [{config.table}]": getattr(config, key)
        for config in configs
        for key in type(config).model_fields
        if key.endswith("listen") and getattr(config, key)
    }
    checks: list[Check] = []
    for name, address in ports.items():
        checks += attempt(f"port {name}", partial(check_port, name, address, running, proc))
    return checks


def check_port(name: str, address: str, running: Mapping[str, int], proc: Path) -> Check:
    """Look whether an address can be listened on.

    Args:
        name: of the key that holds the address.
        address: host:port or unix:///path.
        running: the addresses of our own running programs, with their processes.
        proc: the process file system.
    """
    row = f"port {name}"
    if address in running:
        return ok(row, f"{address}: this data directory's own (pid {running[address]})")
    if address.startswith("unix:"):
        return _check_socket(row, Path(address.removeprefix("unix:").removeprefix("//")))
    host, _, text = address.rpartition(":")
    if text == "0":
        return ok(row, f"{address}: any free port")
    cure = f"set {name} to host:port or unix:///path"
    if not text.isdigit() or int(text) >= 1 << 16:
        return fail(row, f"{address!r} is no address", cure)
    try:
        _bind(host.strip("[]"), int(text))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            owner = owner_of_port(proc, int(text)) or "another process"
            if any(owner.startswith(f"pid {pid} ") for pid in running.values()):
                return ok(row, f"{address}: this data directory's own ({owner})")
            return fail(row, f"{address} is used by {owner}", f"end it, or choose another {name}")
        return fail(row, f"{address}: {error.strerror or error}", cure)
    return ok(row, f"{address} is free")


def running_programs(data_dir: Path) -> dict[str, int]:
    """Return the addresses that running programs of a data directory wrote down, with their pid.

    Files that a killed program left behind are passed over.
    """
    found: dict[str, int] = {}
    for path in sorted((data_dir / "run").glob("*.json")):
        try:
            value = json.loads(path.read_text())
            pid = int(value["pid"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):  # int(Infinity)
            continue
        if not _alive(pid):
            continue
        for key, text in value.items():
            if isinstance(text, str) and key.endswith(("listen", "address")):
                found[text] = pid
    return found


def owner_of_port(proc: Path, port: int) -> str:
    """Return "pid 12 (nginx)" of who listens on a TCP port; "" if that cannot be seen."""
    inodes = {f"socket:[{inode}]" for inode in _listening(proc, port)}
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if not inodes.isdisjoint(_links(folder / "fd")):
                return f"pid {folder.name} ({_command(folder)})"
        except OSError:  # of another user, or gone
            continue
    return ""


def _links(folder: Path) -> Iterator[str]:
    for link in folder.iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(link.readlink())


def _listening(proc: Path, port: int) -> Iterable[str]:
    for table in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _command(folder: Path) -> str:
    words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    return module or Path(words[0]).name or (folder / "comm").read_text().strip()


def _bind(host: str, port: int) -> None:
    """Bind an address for a moment.

    Raises:
        OSError: it cannot be bound.
    """
    family, kind, number, _, place = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, number) as probe:
        # As servers do: connections of a server that has just ended are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)


def _check_socket(row: str, path: Path) -> Check:
    if not path.parent.is_dir():
        return fail(row, f"{path}: its folder does not exist", f"make {path.parent}")
    if not os.access(path.parent, os.W_OK):
        return fail(row, f"{path}: its folder cannot be written", "choose another folder")
    if not path.exists():
        return ok(row, f"unix://{path} is free")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return ok(row, f"unix://{path} is free; a socket that nobody serves lies there")
    return fail(
        row, f"unix://{path} is served by another process", "end it, or choose another path"
    )


def _alive(pid: int) -> bool:
    if pid <= 0:  # names a group of processes
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # gone; larger than any process's
        return False
    except PermissionError:
        return True
    return True
