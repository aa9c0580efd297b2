"""Development set-up ÷ snarkjs' own: an .r1cs on disk to a .zkey on disk.

snarkjs gets a prepared powers-of-tau file, which takes minutes to make and is kept in .build/bench;
its time is `snarkjs groth16 setup` as a process, ours `partita.groth16.setup` with reading and
writing in this process. Both use all cores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.circuit import Mixed, write_r1cs
from benchmarks.options import options
from benchmarks.report import BUILD, ROOT, Report, ratio
from partita.circuits.container import map_file
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.zkey_writer import write_zkey
from partita.groth16.keys import KeyFamily
from partita.groth16.setup import ToxicWaste, set_up

BOUND = 0.2
_CURVE = "bn254"
_SNARKJS = ROOT / "tools" / "node" / "node_modules" / ".bin" / "snarkjs"


def snarkjs(*arguments: object) -> float:
    """Run snarkjs; returns its seconds."""
    command = [shutil.which("node") or "node", str(_SNARKJS), *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"snarkjs {arguments[0]} {arguments[1]}: {done.stdout}{done.stderr}")
    return seconds


def powers(log_size: int) -> Path:
    """The prepared powers-of-tau file of a size, made if it is not there."""
    path = BUILD / f"prepared-{log_size}.ptau"
    if not path.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        first, made = BUILD / f"new-{log_size}.ptau", BUILD / f"making-{log_size}.ptau"
        print(f"making {path}: this takes minutes, once", flush=True)
        snarkjs("powersoftau", "new", "bn128", log_size, first)
        snarkjs("powersoftau", "prepare", "phase2", first, made)
        first.unlink()
        made.rename(path)
    return path


def ours(r1cs: Path, zkey: Path) -> float:
    """Set up with the native extension; returns the seconds."""
    start = time.perf_counter()
    system = read_r1cs(str(r1cs), map_file(r1cs))
    key = set_up(system, KeyFamily.SNARKJS, ToxicWaste.random(system.curve))
    with zkey.open("wb") as file:
        write_zkey(file, key)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - start


def main() -> None:
    """Take turns on one circuit."""
    given = options(__doc__, rounds=2, quick_rounds=1)
    log_size = 12 if given.quick else 16
    circuit = Mixed.of_domain(_CURVE, log_size)
    prepared = powers(log_size)
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        r1cs = Path(folder) / "mixed.r1cs"
        write_r1cs(r1cs, circuit.system())
        pairs = [
            (
                ours(r1cs, Path(folder) / "ours.zkey"),
                snarkjs("groth16", "setup", r1cs, prepared, Path(folder) / "theirs.zkey"),
            )
            for _ in range(given.rounds)
        ]
    figure = ratio(
        f"{_CURVE}, 2^{log_size} constraints",
        ("partita", [pair[0] for pair in pairs]),
        ("snarkjs", [pair[1] for pair in pairs]),
        high=BOUND,
    )
    version = (_SNARKJS.parent.parent / "snarkjs" / "package.json").read_text()
    Report(
        "setup_time",
        "Development set-up ÷ snarkjs",
        "From an .r1cs file to a .zkey file, all cores, in turns. snarkjs reads a prepared "
        "powers-of-tau file whose making is not counted.",
        [figure],
        given.quick,
        {"snarkjs": json.loads(version)["version"]},
    ).save()


if __name__ == "__main__":
    main()
