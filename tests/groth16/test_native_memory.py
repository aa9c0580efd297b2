"""The native backend under a kernel that refuses memory: an error, never an abort."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partita.groth16.curves import CURVES

ROOT = Path(__file__).resolve().parents[2]

# The limit rises in steps from what the process has to what a proof needs, so that every large
# allocation of a proof is the first one to be refused in its turn.
_PROGRAM = """
import resource
import sys
from pathlib import Path
from partita.groth16.errors import ResourceError
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from partita.groth16.witness import Witness
from partita.prover import memory
from tests.groth16.test_setup import chain

memory.return_freed_blocks()
curve = sys.argv[1]
system, values = chain(curve, (1 << 12) - 4)
witness = Witness(curve, b"".join(value.to_bytes(32, "little") for value in values))
proving_key = set_up(system, KeyFamily.SNARKJS, ToxicWaste.random(curve))
key = NativeBackend().load(proving_key, check=False)
verifier = Verifier(VerifyingKey.of_proving_key(proving_key))
_, hard = resource.getrlimit(resource.RLIMIT_DATA)


def used_bytes():
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def attempt():
    try:
        proof = prove(NativeBackend(), key, witness)
    except ResourceError as error:
        return f"refused: {error}"
    return f"proved: {verifier.verify(witness.statement(1), proof.to_bytes())}"


attempt()
for kib in (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 1 << 17):
    resource.setrlimit(resource.RLIMIT_DATA, (used_bytes() + (kib << 10), hard))
    outcome = attempt()
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    print(outcome)
print(attempt())
"""


@pytest.mark.parametrize("curve", CURVES)
def test_a_proof_under_any_limit_is_made_or_refused_and_the_process_goes_on(curve: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, curve],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    assert len(outcomes) == 11
    refused = [x for x in outcomes if x.startswith("refused: ")]
    assert outcomes[0] in refused
    assert all(x.endswith("bytes of memory were refused") for x in refused)
    assert {x for x in outcomes if x not in refused} == {"proved: True"}
    assert outcomes[-1] == "proved: True"
