"""Check rules of the tree that no linter knows; exit 1 with a line for each breach.

* a source file has at most 500 lines: a longer one is cut by noun;
* no left-overs: notes to do something later;
* no lock file records where packages are downloaded from.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 500
SOURCES = {".py", ".rs", ".go", ".cu", ".cuh", ".proto", ".js", ".mjs"}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$|\.pb\.go$")
LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|XXX)\b|\b(?:todo|unimplemented)!\(")
LOCKS = re.compile(r"^requirements/.*\.txt$|(^|/)package-lock\.json$|(^|/)go\.sum$")
ADDRESS = re.compile(r'"resolved"\s*:|--(extra-)?index-url|--find-links')


def breaches(name: str) -> list[str]:
    """Return what is wrong with one tracked file."""
    path = ROOT / name
    wrong = []
    if LOCKS.search(name) and ADDRESS.search(path.read_text()):
        wrong.append(f"{name}: records a download address; write it with `make lock`")
    if path.suffix not in SOURCES or GENERATED.search(name):
        return wrong
    lines = path.read_text().splitlines()
    if len(lines) > MAX_LINES and path.suffix != ".proto":
        wrong.append(f"{name}: {len(lines)} lines, more than {MAX_LINES}; cut it by noun")
    wrong += [
        f"{name}:{number}: left-over: {line.strip()}"
        for number, line in enumerate(lines, 1)
        if path != Path(__file__).resolve() and LEFT_OVER.search(line)
    ]
    return wrong


def main() -> int:
    """Check every tracked file."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    wrong = [
        line for name in sorted(set(names)) if (ROOT / name).is_file() for line in breaches(name)
    ]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
