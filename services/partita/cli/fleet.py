"""`partita fleet`: the provers, their memory, what each does, and why one does nothing."""

from __future__ import annotations

import typer

from partita.cli.options import DataDirOption, JsonFlag, SchedulerOption
from partita.cli.output import show


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("fleet")(fleet)


def fleet(
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the provers and the queue."""
    from partita.cli.fingerprint_fleet import fleet_lines, running_builds
    from partita.cli.jobs import connect
    from partita.cli.views import fleet_object, prover_table, queue_table

    with connect(scheduler, data_dir) as client:
        info, snapshot = client.server_info(), client.fleet()
    parts = [prover_table(snapshot) if snapshot.provers else "no provers have connected yet"]
    if snapshot.lanes:
        parts += ["", queue_table(snapshot)]
    processes = running_builds(info, snapshot)
    if notes := fleet_lines(processes):
        parts += ["", *notes]
    builds = [process.as_object(processes[0].build) for process in processes]
    show(as_json, {**fleet_object(snapshot), "builds": builds}, *parts)
