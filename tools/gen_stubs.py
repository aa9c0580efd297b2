"""Write the Python stubs of every .proto into services/, or check that they are current.

`python tools/gen_stubs.py` writes; `--check` compares and exits 1 with the names that differ.
The generator is the pinned grpcio-tools of requirements/dev.txt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
SERVICES = ROOT / "services"


def generate(out: Path) -> list[Path]:
    """Generate all stubs below `out` and return their paths relative to it."""
    sources = sorted(str(p.relative_to(PROTOS)) for p in PROTOS.rglob("*.proto"))
    include = Path(grpc_tools.__file__).parent / "_proto"
    status = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{include}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            *sources,
        ]
    )
    if status != 0:
        raise SystemExit(status)
    return sorted(p.relative_to(out) for p in out.rglob("*_pb2*"))


def stale(fresh: Path, names: list[Path]) -> list[str]:
    """Return what differs between the committed stubs and the fresh ones."""
    wrong = [
        str(path)
        for path in names
        if not (SERVICES / path).is_file()
        or (SERVICES / path).read_bytes() != (fresh / path).read_bytes()
    ]
    committed = {
        p.relative_to(SERVICES) for p in SERVICES.rglob("*_pb2*.py*") if p.suffix != ".pyc"
    }
    return wrong + [f"{name} (no .proto makes it)" for name in sorted(committed - set(names))]


def main() -> int:
    """Run the generator as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        names = generate(fresh)
        if check:
            wrong = stale(fresh, names)
            for stub in wrong:
                print(f"stale stub: services/{stub}; run `make stubs`", file=sys.stderr)
            return 1 if wrong else 0
        for name in names:
            target = SERVICES / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((fresh / name).read_bytes())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
