"""What tests of several folders need from the machine; what is missing fails, never skips."""

from __future__ import annotations

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
