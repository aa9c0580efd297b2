"""Build hook of the wheel: writes the commit into the package, for its fingerprint to tell.

The commit is $PARTITA_COMMIT (image builds have no .git), else git's; where neither knows it,
nothing is written. A wheel that is installed as editable gets no file: its checkout knows better.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_TARGET = "partita/commit.txt"


class CommitHook(BuildHookInterface[Any]):
    """Adds one file to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file beside the tree and have it packed under its name."""
        commit = "" if version == "editable" else commit_of(Path(self.root))
        if commit:
            folder = Path(tempfile.mkdtemp(prefix="partita-wheel-"))
            path = folder / "commit.txt"
            path.write_text(commit + "\n")
            build_data["force_include"][str(path)] = _TARGET

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file again."""
        del version, artifact_path
        for source, target in build_data["force_include"].items():
            if target == _TARGET:
                Path(source).unlink()
                Path(source).parent.rmdir()


def commit_of(root: Path) -> str:
    """Return the commit of a tree, "" if nobody knows it."""
    if given := os.environ.get("PARTITA_COMMIT"):
        return given
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
