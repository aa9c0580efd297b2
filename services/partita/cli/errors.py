"""Exit codes and how every error becomes one line and one code.

0 done; 1 the job or the check failed; 2 wrong usage or input; 3 the service cannot be reached;
70 a fault of the program itself; 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DONE: Final = 0
FAILED: Final = 1
WRONG: Final = 2
UNREACHABLE: Final = 3
FAULT: Final = 70
INTERRUPTED: Final = 130

_EXTRAS: Final = {"apsw": "scheduler", "wasmtime": "prover"}
"""Packages that only one program needs, and the extra that brings each."""


class UsageError(Exception):
    """The command line or a file it names is wrong; the message says which and what to change."""


class CheckFailedError(Exception):
    """What was asked for was done, and the answer is no.

    Args:
        message: what failed.
        shown: whether `--json` has printed its object already.
    """

    def __init__(self, message: str, *, shown: bool = False) -> None:
        super().__init__(message)
        self.shown = shown


@dataclass(frozen=True)
class Report:
    """An error for people and programs.

    Attributes:
        exit_code: of the process.
        message: one line.
        reason: a stable word, or "".
        fields: field path to what is wrong with it.
        known: whether the program expected such errors; if not, a traceback can help.
        shown: whether stdout holds the object of `--json` already.
    """

    exit_code: int
    message: str
    reason: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    known: bool = True
    shown: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "error": {
                "exit_code": self.exit_code,
                "message": self.message,
                "reason": self.reason,
                "fields": dict(self.fields),
            }
        }


def report_of(error: BaseException) -> Report:
    """Return the report of any exception that ends a command."""
    from typer.exceptions import TyperException

    if isinstance(error, TyperException):
        return Report(WRONG, _one_line(error.format_message()))
    if isinstance(error, UsageError):
        return Report(WRONG, _one_line(str(error)))
    if isinstance(error, CheckFailedError):
        return Report(FAILED, _one_line(str(error)), shown=error.shown)
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        place = f"{error.filename}: " if error.filename else ""
        return Report(WRONG, f"{place}{error.strerror or error}")
    if isinstance(error, ModuleNotFoundError) and error.name in _EXTRAS:
        extra = _EXTRAS[error.name]
        text = f"{error.name} is not installed here: pip install 'partita[{extra}]'"
        return Report(WRONG, f"{text}, or run this where a {extra} is installed")
    return _library_report(error) or Report(
        FAULT,
        _one_line(f"unexpected {type(error).__name__}: {error}"),
        known=False,
    )


def _library_report(error: BaseException) -> Report | None:
    """The report of an error of the client, the library or the configuration."""
    import partita_client as client
    from partita.groth16.errors import Groth16Error, InputError
    from partita.service.config import ConfigError

    if isinstance(error, client.PartitaError):
        codes = {
            client.UnavailableError: UNREACHABLE,
            client.InvalidRequestError: WRONG,
            client.NotFoundError: WRONG,
        }
        code = next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED)
        return Report(code, _one_line(error.message), error.reason, error.fields)
    if isinstance(error, InputError | ConfigError):
        return Report(WRONG, _one_line(str(error)))
    if isinstance(error, Groth16Error):
        return Report(FAILED, _one_line(str(error)))
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())
