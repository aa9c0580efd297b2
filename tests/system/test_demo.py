"""The demonstration ends well, and says so only if it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.system.cluster import ROOT

DEMO = ROOT / "examples" / "demo.py"


def run(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, str(DEMO), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )


def test_the_demonstration_ends_with_its_table_and_the_count_of_verified_proofs(
    snarkjs: Path,
) -> None:
    done = run("--curve", "bls12-381", "--partitions", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "2 of 2 proofs verified"
    assert sum("yes" in line for line in lines) == 2
    assert "verified by snarkjs" in done.stdout


def test_the_demonstration_needs_no_node_and_says_who_checked_the_proofs(tmp_path: Path) -> None:
    done = run("--partitions", "2", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == [
        "snarkjs not found: checked by partita verify",
        "2 of 2 proofs verified",
    ]
    assert sum("yes" in line for line in lines) == 2


def test_the_demonstration_refuses_a_count_it_cannot_show() -> None:
    done = run("--partitions", "0")
    assert done.returncode == 2
    assert "--partitions is 0; give 1 to 100" in done.stderr
