"""Write docs/metrics.md and docs/logs.md from the code, or check that they are what it says.

    python tools/gen_docs.py           write
    python tools/gen_docs.py --check   exit 1 if a page differs from what would be written

Metrics come from the tables that the registries are built from. Log events come from the calls:
every call of a logger made by `logs.get(...)` under services/, read from the syntax tree. An event
is a stable dotted name in the code, never put together; a field without a meaning here is refused.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from partita.prover.metrics import SPECS as PROVER
from partita.scheduler.metrics import SPECS as SCHEDULER
from partita.service.metering import BUILD_INFO, Spec

ROOT = Path(__file__).resolve().parent.parent
SERVICES = ROOT / "services" / "partita"
LEVELS = ("debug", "info", "warning", "error", "critical")
NAME = re.compile(r"[a-z]+(\.[a-z_]+)+")

FIELDS = {
    "address": "The program's own gRPC address.",
    "build": "The build fingerprint, field by field.",
    "circuit_id": "Name of a circuit.",
    "clean": "Whether the prover ended its stream itself and held nothing.",
    "clients": "Address for clients.",
    "code": "Exit code of the process, or status code of a call.",
    "cure": "What to do.",
    "detail": "What happened, for people.",
    "differences": "Fields in which two builds differ, with both values.",
    "directory": "The folder that could not be written.",
    "epoch": "Number of the scheduler's start; it only rises.",
    "error": "The error's text.",
    "failures": "Writes of the store that failed in a row.",
    "files": "The first files that have changed since the start.",
    "instance_id": "Identity of one process of a prover.",
    "job_id": "A job.",
    "jobs": "Jobs that were read from the store.",
    "kind": "Kind of a failure, as on the wire.",
    "lease_id": "A lease: one try of one partition.",
    "limit_bytes": "Memory that the machine and its cgroups allow.",
    "manifest": "Digest of a circuit's manifest, in hex.",
    "memory_bytes": "Memory for keys and leases.",
    "message": "What the peer was told.",
    "metrics": "Address of /metrics over HTTP; empty = none.",
    "n_files": "How many files have changed.",
    "now": "The value after the change.",
    "outcome": "COMPLETED, FAILED or CANCELLED.",
    "partitions": "How many partitions the job has.",
    "path": "A file.",
    "priority": "The job's class.",
    "prover_id": "Stable name of a prover.",
    "provers": "Address for provers.",
    "reason": "Stable word in UPPER_SNAKE, or why a key cannot be used.",
    "role": "What a circuit's file is: zkey, wasm, r1cs, sym.",
    "scheduler": "Address of a scheduler.",
    "schedulers": "Addresses that a prover tries.",
    "session": "Number of a stream, unique in one start of the scheduler.",
    "signal": "The signal that asked for the end.",
    "size_bytes": "Size of a file.",
    "unfinished": "The process ended while native code still ran.",
    "unsaved": "Changes in the write that failed.",
    "unusable_reason": "Why a circuit is not offered; empty = it is.",
    "was": "The value before the change.",
    "why": "What is wrong, for people.",
}
"""What each field of a log line means."""


@dataclass(frozen=True, order=True)
class Event:
    """One event of the logs."""

    name: str
    levels: tuple[str, ...]
    part: str
    fields: tuple[str, ...]


def logged(path: Path) -> Iterator[Event]:
    """Yield the events that a file logs.

    Raises:
        SystemExit: an event or its fields cannot be read from the code, or break a rule.
    """
    tree = ast.parse(path.read_text())
    part, logger = _logger(tree)
    for node, aliases in _calls(tree, logger, {}):
        levels = _levels(node.func, logger, aliases)
        if not levels:
            continue
        place = f"{path.relative_to(ROOT)}:{node.lineno}"
        first = node.args[0] if len(node.args) == 1 else None
        if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
            raise SystemExit(f"{place}: a log call takes one constant event and named fields")
        if NAME.fullmatch(first.value) is None:
            raise SystemExit(f"{place}: {first.value!r} is no dotted name of an event")
        names = tuple(sorted(k.arg for k in node.keywords if k.arg and k.arg != "exc_info"))
        for name in names:
            if name not in FIELDS:
                raise SystemExit(f"{place}: field {name!r} has no meaning in tools/gen_docs.py")
        yield Event(first.value, levels, part, names)


def _logger(tree: ast.Module) -> tuple[str, str]:
    """Return the part and the name of a module's logger, "" if it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call, target = node.value, node.targets[0]
            if ast.unparse(call.func) == "logs.get" and isinstance(target, ast.Name):
                return ast.literal_eval(call.args[0]), target.id
    return "", ""


Aliases = dict[str, tuple[str, ...]]
"""Name in a function -> the methods of the logger that it may stand for."""


def _calls(node: ast.AST, logger: str, aliases: Aliases) -> Iterator[tuple[ast.Call, Aliases]]:
    """Yield every call below a node with the aliases of its own function."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        aliases = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign) and isinstance(child.value, ast.IfExp):
            branches = (child.value.body, child.value.orelse)
            levels = [level for b in branches for level in _levels(b, logger, {})]
            if len(levels) == len(branches) and isinstance(child.targets[0], ast.Name):
                aliases[child.targets[0].id] = tuple(levels)
        if isinstance(child, ast.Call):
            yield child, aliases
        yield from _calls(child, logger, aliases)


def _levels(function: ast.expr, logger: str, aliases: Aliases) -> tuple[str, ...]:
    if isinstance(function, ast.Name):
        return aliases.get(function.id, ())
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        known = function.value.id == logger and function.attr in LEVELS
        return (function.attr,) if known else ()
    return ()


def logs_page(events: list[Event]) -> str:
    """Return docs/logs.md."""
    used = {name for event in events for name in event.fields}
    rows = [
        (f"`{e.name}`", " or ".join(e.levels), e.part, ", ".join(f"`{f}`" for f in e.fields))
        for e in sorted(set(events))
    ]
    return "\n".join(
        [
            "# Logs",
            "",
            "Written by `tools/gen_docs.py` from the code; do not edit.",
            "",
            "One JSON object a line on stderr, a readable form on a terminal. Every line has",
            "`timestamp` (RFC 3339, UTC), `level`, `event` and, for our own events, `part`. Lines",
            "of libraries have their text as `event`. `exception` holds the trace of an error that",
            "nobody foresaw. Event names are kept: filter by them. Inputs, witnesses and secrets",
            "are never logged.",
            "",
            "## Events",
            "",
            *_table(("event", "level", "part", "fields"), rows),
            "",
            "## Fields",
            "",
            *_table(("field", "meaning"), [(f"`{n}`", FIELDS[n]) for n in sorted(used)]),
            "",
        ]
    )


def metrics_page() -> str:
    """Return docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Written by `tools/gen_docs.py` from the tables in the code; do not edit.",
        "",
        "Prometheus' text format under `/metrics` at `metrics_listen` (scheduler 127.0.0.1:9832; a",
        "prover has none until it is set). The real address is in `DATA_DIR/run/`. No label holds",
        "the id of a job, a lease or a request. Beside these there are the usual `process_*`.",
        "A series appears with its first value.",
    ]
    for title, specs in (
        ("Both", (BUILD_INFO,)),
        ("Scheduler", SCHEDULER),
        ("Prover", PROVER),
    ):
        rows = [_row(spec) for spec in specs]
        lines += ["", f"## {title}", "", *_table(("name", "type", "labels", "meaning"), rows)]
    return "\n".join([*lines, ""])


def _row(spec: Spec) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"`{spec.name}`", spec.kind, labels, spec.meaning


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def main() -> int:
    """Write the pages or check them."""
    events = [
        event
        for path in sorted(SERVICES.rglob("*.py"))
        if "v1" not in path.relative_to(SERVICES).parts
        for event in logged(path)
    ]
    used = {name for event in events for name in event.fields}
    if unused := sorted(set(FIELDS) - used):
        raise SystemExit(f"tools/gen_docs.py: no event has the fields {', '.join(unused)}")
    pages = {"metrics.md": metrics_page(), "logs.md": logs_page(events)}
    stale = []
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            stale.append(f"docs/{name} is not what the code says: run `make docs`")
    print("\n".join(stale), file=sys.stderr, end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
