"""Structured logs: JSON lines on stderr, or a readable form on a terminal.

Every line has `timestamp`, `level`, `event` (a stable dotted name such as "lease.granted") and
what the caller bound. Records of other libraries come out in the same form. No witness, input or
secret is ever logged, so tracebacks come without the values of variables; identifiers of jobs,
partitions, leases and provers are.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

LEVELS = ("debug", "info", "warning", "error")


def configure(*, level: str = "info", json: bool | None = None) -> None:
    """Set up logging for the whole process; call once, first.

    Args:
        level: one of LEVELS.
        json: JSON lines; None = unless stderr is a terminal.
    """
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        final: list[Any] = [
            structlog.processors.ExceptionRenderer(tracebacks),
            structlog.processors.JSONRenderer(default=str),
        ]
    else:
        final = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *final],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.INFO))


def get(name: str) -> Any:
    """Return the logger of one part of the program; `name` is bound as `part`."""
    return structlog.get_logger(part=name)
