"""`partita up | scheduler | prover`: the programs of this machine.

`up` divides what the machine has: a part for the scheduler, the rest in equal parts for the
provers. The programs themselves are separate processes that meet only on the wire.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from partita.cli.errors import UsageError
from partita.cli.options import (
    BackendName,
    ConfigOption,
    DataDirOption,
    JsonFlag,
    running_scheduler,
)
from partita.cli.output import note, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from partita.cli.supervisor import Child, Supervisor

BackendOption = Annotated[
    BackendName | None, typer.Option("--backend", help="What computes; default: native.")
]

_SCHEDULER_SHARE: Final = 16
_SCHEDULER_LEAST_BYTES: Final = 256 << 20
_SCHEDULER_MOST_BYTES: Final = 4 << 30
_MARGIN_SHARE: Final = 8
_PROVER_LEAST_BYTES: Final = 128 << 20
_POLL_S: Final = 0.05


@dataclass(frozen=True)
class Share:
    """What one prover may use.

    Attributes:
        memory_bytes: host memory for keys and leases.
        cores: cores to compute on.
    """

    memory_bytes: int
    cores: int


def register(app: typer.Typer) -> None:
    """Add the verbs to the application."""
    app.command("up")(up)
    app.command("scheduler")(scheduler)
    app.command("prover")(prover)


def up(
    provers: Annotated[int, typer.Option(min=1, max=64, help="How many provers.")] = 1,
    backend: BackendOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a scheduler and provers on this machine until SIGTERM or Ctrl-C.

    With --json one object with their addresses is printed once all are ready.
    """
    from partita.service.sizes import memory_limit_bytes

    share = divide(memory_limit_bytes(), len(os.sched_getaffinity(0)), provers)
    plan = _Plan(config, data_dir, None if backend is None else backend.value, provers, share)
    plan.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(_up(plan, as_json))


def divide(memory_bytes: int, cores: int, provers: int) -> Share:
    """Divide a machine: a margin for everything else, a part for the scheduler, the rest in equal
    parts.

    Raises:
        UsageError: the parts would be too small to prove anything.
    """
    scheduler_bytes = memory_bytes // _SCHEDULER_SHARE
    scheduler_bytes = max(_SCHEDULER_LEAST_BYTES, min(scheduler_bytes, _SCHEDULER_MOST_BYTES))
    left_bytes = memory_bytes - memory_bytes // _MARGIN_SHARE - scheduler_bytes
    part_bytes = left_bytes // provers >> 20 << 20
    if part_bytes < _PROVER_LEAST_BYTES:
        raise UsageError(
            f"--provers: {provers} would have {part_bytes >> 20} MiB each, the least is "
            f"{_PROVER_LEAST_BYTES >> 20} MiB; start fewer"
        )
    return Share(part_bytes, max(1, cores // provers))


class _Plan:
    """What is started where; the programs' own configuration is read once, before anything runs.

    Args:
        config: the file of all programs.
        data_dir: overrides the file's.
        backend: overrides the file's.
        provers: how many.
        share: what each may use unless the file says otherwise.

    Raises:
        ConfigError: file or environment are wrong.
    """

    def __init__(
        self,
        config: Path | None,
        data_dir: Path | None,
        backend: str | None,
        provers: int,
        share: Share,
    ) -> None:
        from partita.prover.config import ProverConfig
        from partita.scheduler.config import SchedulerConfig
        from partita.service.config import load_file

        scheduler = load_file(SchedulerConfig, config, data_dir=data_dir)
        self._prover = load_file(ProverConfig, config, backend=backend)
        self._share = share
        self.config = config
        self.data_dir = scheduler.data_dir.absolute()
        self.provers = provers

    def scheduler_arguments(self) -> list[str]:
        """The command line of the scheduler."""
        config = [] if self.config is None else ["--config", str(self.config)]
        return ["--data-dir", str(self.data_dir), *config]

    def prover_environment(self, index: int, scheduler: str) -> dict[str, str]:
        """What makes the index-th prover differ from the others; settings of its own stay."""
        config, share = self._prover, self._share
        memory_bytes = share.memory_bytes if config.memory is None else config.memory
        values = {
            "DATA_DIR": str(self.data_dir),
            "SCHEDULERS": json.dumps([scheduler]),
            "PROVER_ID": f"{config.prover_id}-{index}",
            "BACKEND": config.backend,
            "LISTEN": _in_row(config.listen, index),
            "METRICS_LISTEN": _in_row(config.metrics_listen, index),
            "MEMORY": f"{memory_bytes}B",
            "CORES": str(config.cores or share.cores),
        }
        return {f"PARTITA_PROVER__{name}": value for name, value in values.items()}


def _in_row(address: str, index: int) -> str:
    """Return the index-th address: port 0 is any free one, a fixed port the first of a row."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) and int(port) + index}" if port.isdigit() else address


async def _up(plan: _Plan, as_json: bool) -> None:
    from partita.cli.supervisor import Supervisor

    supervisor = Supervisor(note)
    try:
        addresses = await _start_scheduler(supervisor, plan)
        if addresses is None:
            return
        names = await _start_provers(supervisor, plan, addresses)
        if names is None:
            return
        supervisor.keep()
        value = {
            "scheduler": addresses["listen"],
            "prover_listen": addresses["prover_listen"],
            "pid": addresses["pid"],
            "data_dir": str(plan.data_dir),
            "provers": names,
        }
        show(
            as_json,
            value,
            f"ready: scheduler at {addresses['listen']}, provers {', '.join(names)}, "
            f"data in {plan.data_dir}",
        )
        sys.stdout.flush()
        await supervisor.wait_for_stop()
    finally:
        await supervisor.drain()


async def _start_scheduler(supervisor: Supervisor, plan: _Plan) -> dict[str, Any] | None:
    """Start the scheduler and return what it wrote down; None if a stop was asked for."""
    from partita.cli.supervisor import Program

    program = Program("scheduler", "partita.scheduler", plan.scheduler_arguments(), {})
    child = await supervisor.start(program)
    found: dict[str, Any] = {}
    ready = asyncio.create_task(_until_serving(plan.data_dir, child, found))
    if not await supervisor.until_ready(ready):
        return None
    # Started again, it must be where the provers look for it, also if it chose its ports itself.
    again = [
        *("--listen", found["listen"]),
        *("--prover-listen", found["prover_listen"]),
    ]
    child.program = replace(program, arguments=[*program.arguments, *again])
    return found


async def _until_serving(data_dir: Path, child: Child, found: dict[str, Any]) -> None:
    from partita_client import AsyncClient

    path = data_dir / "run" / "scheduler.json"
    while found.get("pid") != child.pid:
        await asyncio.sleep(_POLL_S)
        if path.is_file():
            found.clear()
            found.update(json.loads(path.read_text()))
    async with AsyncClient(found["listen"]) as client:
        await client.server_info()


async def _start_provers(
    supervisor: Supervisor, plan: _Plan, addresses: dict[str, Any]
) -> list[str] | None:
    """Start the provers and return their ids once all are connected; None as above."""
    from partita.cli.supervisor import Program

    names: list[str] = []
    for index in range(plan.provers):
        environment = plan.prover_environment(index, addresses["prover_listen"])
        names.append(environment["PARTITA_PROVER__PROVER_ID"])
        arguments = [] if plan.config is None else ["--config", str(plan.config)]
        await supervisor.start(Program(names[-1], "partita.prover", arguments, environment))
    ready = asyncio.create_task(_until_connected(addresses["listen"], names))
    return names if await supervisor.until_ready(ready) else None


async def _until_connected(address: str, names: list[str]) -> None:
    from contextlib import aclosing

    from partita_client import AsyncClient

    async with AsyncClient(address) as client, aclosing(client.watch_fleet()) as snapshots:
        async for fleet in snapshots:
            here = {view.hello.prover_id for view in fleet.provers if view.connected}
            if here.issuperset(names):
                return


def scheduler(
    config: ConfigOption = None,
    listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="For clients: host:port or unix:///path.")
    ] = None,
    prover_listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="For provers.")
    ] = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Metrics and probes over HTTP; '' for none."),
    ] = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run one scheduler in the foreground and say where once it is ready."""
    arguments = ["--json"] if as_json else []
    for option, value in (
        ("--data-dir", data_dir),
        ("--config", config),
        ("--listen", listen),
        ("--prover-listen", prover_listen),
        ("--metrics-listen", metrics_listen),
    ):
        arguments += [] if value is None else [option, str(value)]
    _become("partita.scheduler", arguments, {})


def prover(
    config: ConfigOption = None,
    connect: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The scheduler's address for provers; default: as configured, else that of the "
            "data directory.",
        ),
    ] = None,
    prover_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Its stable name; default: the host's.")
    ] = None,
    backend: BackendOption = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Metrics and probes over HTTP; '' for none."),
    ] = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run one prover in the foreground and say where once it is ready."""
    given = {
        "data_dir": None if data_dir is None else str(data_dir),
        "prover_id": prover_id,
        "backend": None if backend is None else backend.value,
        "metrics_listen": metrics_listen,
    }
    if connect is None:
        connect = _scheduler_nearby(config, given)
    given["schedulers"] = None if connect is None else json.dumps([connect])
    environment = {f"PARTITA_PROVER__{k.upper()}": v for k, v in given.items() if v is not None}
    arguments = ["--json"] if as_json else []
    arguments += [] if config is None else ["--config", str(config)]
    _become("partita.prover", arguments, environment)


def _scheduler_nearby(config: Path | None, given: Mapping[str, str | None]) -> str | None:
    """Where the scheduler of the data directory takes provers; None if schedulers are configured.

    Args:
        config: the file of all programs.
        given: what the command line says, by the names of the configuration.

    Raises:
        ConfigError: file or environment are wrong.
    """
    from partita.prover.config import ProverConfig
    from partita.service.config import load_file

    configured = load_file(ProverConfig, config, **given)
    if "schedulers" in configured.model_fields_set:
        return None
    return running_scheduler(configured.data_dir, "prover_listen")


def _become(module: str, arguments: list[str], environment: dict[str, str]) -> None:
    """Replace this process by a program, which then gets the signals itself."""
    sys.stdout.flush()
    os.execve(
        sys.executable,
        [sys.executable, "-m", module, *arguments],
        {**os.environ, **environment},
    )
