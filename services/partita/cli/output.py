"""What verbs print: one JSON object or text on stdout; progress and errors on stderr.

Colour, live tables and progress bars only on a terminal; elsewhere plain lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PLAIN_WIDTH = 200


class Step(Protocol):
    """Tells how far something is."""

    def __call__(self, done: float, total: float) -> None:
        """Say that `done` of `total` is done."""


def out() -> Console:
    """Return the console of stdout."""
    from rich.console import Console

    plain = not sys.stdout.isatty()
    return Console(file=sys.stdout, width=_PLAIN_WIDTH if plain else None, highlight=False)


def err() -> Console:
    """Return the console of stderr."""
    from rich.console import Console

    plain = not sys.stderr.isatty()
    return Console(file=sys.stderr, width=_PLAIN_WIDTH if plain else None, highlight=False)


def show(as_json: bool, value: dict[str, Any], *text: RenderableType) -> None:
    """Print the result of a verb.

    Args:
        as_json: print `value`; otherwise `text`.
        value: the result for programs.
        text: the result for people; lines and tables.
    """
    if as_json:
        print(json.dumps(value))
        return
    console = out()
    for part in text:
        console.print(part, markup=False, soft_wrap=isinstance(part, str))


def note(text: str) -> None:
    """Print a line for people on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(label: str, unit: str = "") -> Iterator[Step]:
    """Show a bar on stderr while the block runs, if that is a terminal.

    Args:
        label: what goes on.
        unit: "bytes" shows sizes; otherwise counts are shown.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None  # noqa: ARG005
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    counts = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
