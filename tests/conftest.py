"""What tests of several folders need from the machine; what is missing fails, never skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def snarkjs() -> Path:
    """The snarkjs program of tools/node."""
    program = ROOT / "tools" / "node" / "node_modules" / ".bin" / "snarkjs"
    if not program.exists():
        pytest.fail(f"{program} is missing: run `make test`, which installs it")
    return program


@pytest.fixture(scope="session", autouse=True)
def _no_fixed_port() -> None:
    """Let schedulers of tests, child processes too, leave the default metrics port alone."""
    os.environ["PARTITA_SCHEDULER__METRICS_LISTEN"] = ""
