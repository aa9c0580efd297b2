"""`partita fleet`: the provers, their memory, what each does, and why one does nothing.

With a verb it steers one prover: cordon, uncordon, drain, quarantine, release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from partita.cli.options import DataDirOption, JsonFlag, SchedulerOption
from partita.cli.output import show

ProverArgument = Annotated[str, typer.Argument(metavar="PROVER", help="The prover's id.")]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for people.")]

app = typer.Typer(help="Show the provers and the queue, or steer one prover.")


def register(parent: typer.Typer) -> None:
    """Add the verbs to the application."""
    parent.add_typer(app, name="fleet")


@app.callback(invoke_without_command=True)
def fleet(
    context: typer.Context,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the provers and the queue, or steer one prover."""
    if context.invoked_subcommand is None:
        _show(scheduler, data_dir, as_json=as_json)


def _show(scheduler: str | None, data_dir: Path | None, *, as_json: bool) -> None:
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


_VERBS: Final = {
    "cordon": ("Let a prover finish what it holds and take nothing new.", {"mode": "cordoned"}),
    "uncordon": ("Let a cordoned or drained prover take leases again.", {"mode": "active"}),
    "drain": ("Let a prover finish or hand back what it holds.", {"mode": "drained"}),
    "quarantine": ("Give a prover no work until it is released.", {"trust": "quarantined"}),
    "release": ("Trust a quarantined prover again; its score starts anew.", {"trust": "trusted"}),
}
"""Each verb: its help, and what it sets."""


def _add_verb(verb: str, text: str, change: dict[str, str]) -> None:
    def command(
        context: typer.Context,
        prover: ProverArgument,
        reason: ReasonOption = "",
        scheduler: SchedulerOption = None,
        data_dir: DataDirOption = None,
        as_json: JsonFlag = False,
    ) -> None:
        _set(context, prover, scheduler, data_dir, as_json, reason, **change)

    app.command(verb, help=text)(command)


for _verb, (_text, _change) in _VERBS.items():
    _add_verb(_verb, _text, _change)


def _set(
    context: typer.Context,
    prover_id: str,
    scheduler: str | None,
    data_dir: Path | None,
    as_json: bool,
    reason: str,
    *,
    mode: str | None = None,
    trust: str | None = None,
) -> None:
    """Set one prover's mode or trust; options may stand before the verb or after it."""
    from partita.cli.jobs import connect
    from partita.cli.views import prover_object

    before: dict[str, Any] = context.parent.params if context.parent is not None else {}
    scheduler = before.get("scheduler") if scheduler is None else scheduler
    data_dir = before.get("data_dir") if data_dir is None else data_dir
    with connect(scheduler, data_dir) as client:
        view = client.set_prover_mode(prover_id, mode=mode, trust=trust, reason=reason)
    # Not what the prover says of itself: that is of before the change.
    value = {**prover_object(view), "reason": view.reason or None}
    why = f": {view.reason}" if view.reason else ""
    line = f"prover {prover_id} is {value['mode']}, {value['trust']}{why}"
    show(as_json or bool(before.get("as_json")), value, line)
