"""What a scheduler may import here does not pull in the provers' half."""

from __future__ import annotations

import subprocess
import sys

SCHEDULER_HALF = ("catalogue", "circuit_files", "manifest", "wtns", "snarkjs_json", "errors")
PROVER_HALF = (
    "wasmtime",
    "partita_native",
    "partita.circuits.zkey",
    "partita.circuits.circom",
    "partita.circuits.circom_program",
    "partita.circuits.synthesis",
    "partita.circuits.intake",
)


def test_the_catalogue_needs_neither_wasmtime_nor_keys() -> None:
    code = "import sys\n"
    code += "".join(f"import partita.circuits.{name}\n" for name in SCHEDULER_HALF)
    code += f"print([name for name in {PROVER_HALF!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
