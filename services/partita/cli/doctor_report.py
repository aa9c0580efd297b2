"""What one check of `partita doctor` found, and what to do about it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Status(StrEnum):
    """How bad it is: a failure keeps something from working, a warning may."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One row of the report.

    Attributes:
        name: what was looked at.
        status: the verdict.
        found: what is there.
        cure: what to do; "" only if the status is OK.
    """

    name: str
    status: Status
    found: str
    cure: str = ""

    def as_object(self) -> dict[str, str]:
        """Return the row for `--json`."""
        return {
            "name": self.name,
            "status": self.status.value,
            "found": self.found,
            "cure": self.cure,
        }


def ok(name: str, found: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, Status.OK, found)


def warn(name: str, found: str, cure: str) -> Check:
    """Return a check that found what may become a problem."""
    return Check(name, Status.WARN, found, cure)


def fail(name: str, found: str, cure: str) -> Check:
    """Return a check that found a problem."""
    return Check(name, Status.FAIL, found, cure)


def attempt(name: str, look: Callable[[], Check | Iterable[Check]]) -> list[Check]:
    """Return what a check found; an error that it raises becomes a failed row of its name.

    Args:
        name: of the row, if the check cannot be made.
        look: makes the check.
    """
    try:
        found = look()
        return [found] if isinstance(found, Check) else list(found)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        text = f"cannot be checked: {place}{error.strerror or error}"
        what = error.filename or "what it names"
        cure = f"see to {what}: is it the kind of file it should be, and may this user read it?"
        return [fail(name, text, cure)]
    except Exception as error:  # noqa: BLE001 - the other checks must go on
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        text = " ".join(f"{type(error).__name__}: {error}".split())
        cure = "report it as a fault of doctor; the other rows hold"
        return [fail(name, f"cannot be checked: {text} ({place})", cure)]


def report_object(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the whole report for `--json`."""
    rows = list(checks)
    return {
        "ok": all(row.status is not Status.FAIL for row in rows),
        "checks": [row.as_object() for row in rows],
    }


def report_table(checks: Iterable[Check]) -> Table:
    """Return the whole report for people."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("check", "", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for row in checks:
        status = Text(row.status.value, style=_STYLES[row.status.value])
        table.add_row(Text(row.name), status, Text(row.found), Text(row.cure))
    return table
