"""What is logged, and what never is."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from partita.service import logs

SECRET = "the input of somebody"


@pytest.fixture(autouse=True)
def configured_again() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], level = before
    root.setLevel(level)


def _fail(witness: str) -> None:
    raise ValueError(f"{len(witness)} is too long")


@pytest.mark.parametrize("json", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_a_traceback_names_the_lines_but_no_value(
    capsys: pytest.CaptureFixture[str], *, json: bool, ours: bool
) -> None:
    logs.configure(json=json)
    try:
        _fail(SECRET)
    except ValueError as error:
        if ours:
            logs.get("x").error("part.failed", exc_info=error)
        else:
            logging.getLogger("library").error("failed", exc_info=error)
    written = capsys.readouterr().err
    assert "ValueError" in written
    assert "_fail" in written
    assert SECRET not in written
