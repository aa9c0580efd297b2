"""Runs command lines in this process and keeps what they print."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from partita.cli.main import run


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Cli = Callable[..., Coroutine[Any, Any, Ended]]


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data directory that the commands use; no scheduler is named by the environment."""
    path = tmp_path / "data"
    monkeypatch.setenv("PARTITA_DATA_DIR", str(path))
    monkeypatch.delenv("PARTITA_SCHEDULER", raising=False)
    return path


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line beside the event loop."""

    async def call(*arguments: object) -> Ended:
        capsys.readouterr()
        code = await asyncio.to_thread(run, [str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return call
