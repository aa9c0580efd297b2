"""`partita config`: the configuration of every program, its defaults, its check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli.options import JsonFlag
from partita.cli.output import show

if TYPE_CHECKING:
    from partita.service.config import ProgramConfig

app = typer.Typer(help="Print, check and show configuration.", rich_markup_mode=None)


@app.command("default")
def default(as_json: JsonFlag = False) -> None:
    """Print a commented file with every key and its default."""
    from partita.service.config import default_toml

    text = default_toml(_models())
    show(as_json, {"toml": text}, text.rstrip("\n"))


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="The TOML file.")], as_json: JsonFlag = False
) -> None:
    """Check a file, with the environment as it is now."""
    _load(file)
    show(as_json, {"checked": str(file)}, f"{file} is right")


@app.command("show")
def show_config(
    file: Annotated[Path | None, typer.Argument(help="The TOML file; default: none.")] = None,
    effective: Annotated[
        bool, typer.Option("--effective", help="Every key in force, defaults included.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a file and the environment set."""
    import tomllib

    from partita.service.config import default_toml, show_toml

    tables: list[str] = []
    for config in _load(file):
        text = show_toml(config)
        if not effective:
            usual = set(default_toml([type(config)]).splitlines())
            kept = [line for line in text.splitlines()[1:] if line not in usual]
            text = "\n".join([text.splitlines()[0], *kept]) + "\n"
        tables.append(text)
    text = "\n".join(tables)
    show(as_json, tomllib.loads(text), text.rstrip("\n"))


def _models() -> list[type[ProgramConfig]]:
    from partita.prover.config import ProverConfig
    from partita.scheduler.config import SchedulerConfig

    return [SchedulerConfig, ProverConfig]


def _load(file: Path | None) -> list[ProgramConfig]:
    from partita.service.config import load_file

    return [load_file(model, file) for model in _models()]
