"""`partita fingerprint`: what is installed here, and in what a running service differs from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli.errors import CheckFailedError
from partita.cli.options import BackendName, JsonFlag
from partita.cli.output import show

if TYPE_CHECKING:
    from rich.table import Table

    from partita.cli.fingerprint_fleet import Running
    from partita.service.fingerprint import Fingerprint


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("fingerprint")(fingerprint)


def fingerprint(
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="ADDRESS",
            help="A scheduler: name each field in which it or a prover of it differs; "
            "exit code 1 if any does.",
        ),
    ] = None,
    backend: Annotated[
        BackendName, typer.Option("--backend", help="What would compute here.")
    ] = BackendName.NATIVE,
    as_json: JsonFlag = False,
) -> None:
    """Print the build that is installed here: code, native extension, kernels, device, runtime."""
    from partita.service import fingerprint as service

    here = service.fingerprint(backend.value)
    if compare is None:
        show(as_json, here.as_object(), _table(here))
        return
    processes = _running(compare)
    objects = [process.as_object(here) for process in processes]
    count = sum(len(each["differences"]) for each in objects)
    value = {"fingerprint": here.as_object(), "same": not count, "compared": objects}
    show(as_json, value, _table(here), "", *_lines(here, processes))
    if count:
        fields = "field" if count == 1 else "fields"
        raise CheckFailedError(
            f"{compare} differs from what is installed here in {count} {fields}", shown=as_json
        )


def _running(address: str) -> list[Running]:
    from partita.cli.fingerprint_fleet import running_builds
    from partita.cli.jobs import connect

    with connect(address, None) as client:
        return running_builds(client.server_info(), client.fleet())


def _lines(here: Fingerprint, processes: list[Running]) -> list[str]:
    from partita.cli.fingerprint_fleet import difference_line, stale_line
    from partita.service.fingerprint import differences

    lines: list[str] = []
    for process in processes:
        found = differences(here, process.build)
        lines += [difference_line(process.process, each) for each in found]
        if not found:
            lines.append(f"{process.process}: the same build")
        if process.stale:
            lines.append(stale_line(process.process))
    return lines


def _table(build: Fingerprint) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, text in build.as_object().items():
        table.add_row(name, text or "none")
    return table
