"""The entry point `partita`: one application of all verbs, and exit codes for all errors.

Every verb raises; here, and only here, an error becomes one line and an exit code. A traceback is
shown only for faults of the program itself, and only with --debug.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from partita.cli import circuits, configuration, doctor, fingerprint, fleet, jobs, programs, proving
from partita.cli.errors import FAILED, INTERRUPTED, report_of

app = typer.Typer(
    name="partita",
    help="Groth16 proofs by a scheduler and its provers. Exit codes: 0 done, 1 the job or check "
    "failed, 2 wrong usage or input, 3 cannot reach the service.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
) -> None:
    del debug  # read from the arguments where errors end


app.add_typer(circuits.app, name="circuits")
app.add_typer(configuration.app, name="config")
for group in (proving, programs, jobs, fleet, fingerprint, doctor):
    group.register(app)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = app(arguments or ["--help"], prog_name="partita", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has gone; there is nobody to tell, now or at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the outermost edge of the program
        report = report_of(error)
        if "--json" in arguments and not report.shown:
            print(json.dumps(report.as_json()))
        if not report.known and "--debug" in arguments:
            traceback.print_exception(error)
        hint = "" if report.known else "; `partita --debug ...` shows where"
        print(f"error: {report.message}{hint}", file=sys.stderr)
        return report.exit_code
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
