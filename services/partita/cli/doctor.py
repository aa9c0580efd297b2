"""`partita doctor`: everything that can be wrong on this machine, each with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli.errors import CheckFailedError
from partita.cli.options import (
    DataDirOption,
    JsonFlag,
    SchedulerOption,
    running_scheduler,
    scheduler_address,
)
from partita.cli.output import progress, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.cli.doctor_install import Settings
    from partita.cli.doctor_report import Check


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("doctor")(doctor)


def doctor(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The programs' TOML file.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read every file of every circuit, however large.")
    ] = False,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Look for everything that can be wrong on this machine; exit code 1 if something is."""
    from partita.cli.doctor_install import read_settings
    from partita.cli.doctor_report import Status, report_object, report_table

    settings = read_settings(config, data_dir)
    checks: list[Check] = []
    steps = _steps(settings, scheduler, full=full)
    with progress("looking") as step:
        for index, look in enumerate(steps):
            step(index, len(steps))
            checks += look()
    show(as_json, report_object(checks), report_table(checks))
    failed = [check.name for check in checks if check.status is Status.FAIL]
    if failed:
        raise CheckFailedError(f"wrong here: {', '.join(failed)}", shown=as_json)


def _steps(
    settings: Settings, scheduler: str | None, *, full: bool
) -> list[Callable[[], list[Check]]]:
    from partita.cli.doctor_install import install_checks
    from partita.cli.doctor_machine import Machine, machine_checks
    from partita.cli.doctor_ports import check_port, running_programs
    from partita.cli.doctor_services import check_catalogue, check_prover_ports, check_scheduler

    machine = Machine()
    data_dir = settings.scheduler.data_dir
    running = running_programs(data_dir)
    ports = {
        f"{key} of [{config.table}]": getattr(config, key)
        for config in (settings.scheduler, settings.prover)
        for key in type(config).model_fields
        if key.endswith("listen") and getattr(config, key)
    }
    wrote = running_scheduler(data_dir)
    address = scheduler_address(scheduler or wrote or settings.scheduler.listen, data_dir)
    if address.endswith(":0"):
        address = scheduler_address(None, data_dir)
    return [
        lambda: install_checks(settings),
        lambda: machine_checks(machine, data_dir, settings.prover.memory),
        lambda: [check_port(name, ports[name], running, machine.proc) for name in ports],
        lambda: check_catalogue(data_dir / "circuits", full=full),
        lambda: check_scheduler(address, expected=bool(scheduler or wrote)),
        lambda: check_prover_ports(data_dir),
    ]
