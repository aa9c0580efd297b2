"""`partita doctor`: everything that can be wrong on this machine, each with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli.errors import CheckFailedError
from partita.cli.options import (
    DEFAULT_SCHEDULER,
    ConfigOption,
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
    config: ConfigOption = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read every file of every circuit, however large.")
    ] = False,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Look for everything that can be wrong on this machine; exit code 1 if something is."""
    from partita.cli.doctor_install import read_settings
    from partita.cli.doctor_report import Status, attempt, report_object, report_table

    if scheduler is not None:
        scheduler_address(scheduler, data_dir)
    settings = read_settings(config, data_dir)
    checks: list[Check] = []
    steps = _steps(settings, scheduler, full=full)
    with progress("looking") as step:
        for index, (name, look) in enumerate(steps.items()):
            step(index, len(steps))
            checks += attempt(name, look)
    show(as_json, report_object(checks), report_table(checks))
    failed = [check.name for check in checks if check.status is Status.FAIL]
    if failed:
        raise CheckFailedError(f"wrong here: {', '.join(failed)}", shown=as_json)


def _steps(
    settings: Settings, scheduler: str | None, *, full: bool
) -> dict[str, Callable[[], list[Check]]]:
    """What is looked at in turn, each under the name of the row if it cannot be."""
    from partita.cli.doctor_install import install_checks
    from partita.cli.doctor_machine import Machine, machine_checks
    from partita.cli.doctor_ports import port_checks
    from partita.cli.doctor_schedulers import check_prover_schedulers, prover_schedulers
    from partita.cli.doctor_services import check_catalogue, check_prover_ports, check_scheduler

    machine = Machine()
    data_dir = settings.scheduler.data_dir

    def of_clients() -> list[Check]:
        wrote = running_scheduler(data_dir)
        address = scheduler or wrote or settings.scheduler.listen
        if address.endswith(":0"):
            address = DEFAULT_SCHEDULER
        return check_scheduler(address, expected=bool(scheduler or wrote))

    def of_provers() -> list[Check]:
        wrote = running_scheduler(data_dir, "prover_listen")
        addresses, expected = prover_schedulers(settings.prover, wrote)
        return check_prover_schedulers(addresses, expected=expected)

    return {
        "installation": lambda: install_checks(settings),
        "machine": lambda: machine_checks(machine, data_dir, settings.prover.memory),
        "ports": lambda: port_checks((settings.scheduler, settings.prover), data_dir, machine.proc),
        "circuits": lambda: check_catalogue(data_dir / "circuits", full=full),
        "scheduler": of_clients,
        "scheduler for provers": of_provers,
        "own ports of provers": lambda: check_prover_ports(data_dir),
    }
