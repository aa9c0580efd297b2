"""Options that several verbs share, and where their defaults come from."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from partita.cli.errors import UsageError
from partita.service.paths import default_data_dir

DEFAULT_SCHEDULER: Final = "127.0.0.1:9830"
"""Where clients look if nothing says otherwise."""

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        envvar="PARTITA_SCHEDULER",
        metavar="ADDRESS",
        help="host:port or unix:///path; default: the scheduler of the data directory.",
        show_default=False,
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="PARTITA_DATA_DIR",
        metavar="DIR",
        help="Where circuits and state lie; default: $XDG_DATA_HOME/partita.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The programs' TOML file; `partita config` knows it.",
        show_default=False,
    ),
]


class BackendName(StrEnum):
    """What computes proofs."""

    NATIVE = "native"
    REFERENCE = "reference"


class PriorityName(StrEnum):
    """The classes of jobs."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


def data_dir_of(given: Path | None, config: Path | None = None) -> Path:
    """Return the data directory: `given`, else what `config` says, else the default one.

    Args:
        given: on the command line or in the environment.
        config: the programs' TOML file; its scheduler's directory holds the catalogue.

    Raises:
        ConfigError: `config` is wrong.
    """
    if config is None:
        return default_data_dir() if given is None else given
    from partita.scheduler.config import SchedulerConfig
    from partita.service.config import load_file

    return load_file(SchedulerConfig, config, data_dir=given).data_dir


def running_scheduler(data_dir: Path, port: str = "listen") -> str | None:
    """Return the address that the data directory's scheduler wrote down, or None.

    Args:
        data_dir: whose.
        port: "listen", for clients, or "prover_listen".
    """
    path = data_dir / "run" / "scheduler.json"
    try:
        address = json.loads(path.read_text())[port]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None


def scheduler_address(given: str | None, data_dir: Path | None) -> str:
    """Return the scheduler's address: `given`, else the running one's, else the usual one.

    Raises:
        UsageError: `given` is no address.
    """
    if given is None:
        return running_scheduler(data_dir_of(data_dir)) or DEFAULT_SCHEDULER
    host, _, port = given.rpartition(":")
    if given.startswith("unix:") or (host and port.isdigit() and int(port) < 1 << 16):
        return given
    raise UsageError(f"--scheduler: {given!r} is no address; write host:port or unix:///path")
