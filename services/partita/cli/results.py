"""The result of a job as files: DIR/job.json and DIR/<index>/proof.json, public.json.

The proofs were verified by the scheduler before it gave them out; the files are snarkjs' own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from partita.cli.proving import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from partita.v1 import proving_pb2

_MOST_PARTITIONS: Final = 1024
_CURVE_OF_SIZE: Final = {192: "bls12-381", 256: "bn254"}


def write_results(
    out: Path, job: dict[str, Any], partitions: list[proving_pb2.Partition]
) -> list[Path]:
    """Write what a job has; what an earlier job wrote into that folder is replaced or removed.

    Args:
        out: the folder; made if it is not there.
        job: the job as `--json` shows it.
        partitions: all of them; those without a proof get no folder.

    Returns:
        The proofs that were written, in order.
    """
    from partita.circuits.snarkjs_json import write_proof_json, write_public_json
    from partita.groth16.proof import Proof

    written: list[Path] = []
    for partition in partitions:
        if not partition.proof:
            continue
        curve = _CURVE_OF_SIZE[len(partition.proof)]
        folder = out / str(partition.index)
        folder.mkdir(parents=True, exist_ok=True)
        proof = Proof.from_bytes(curve, partition.proof)
        write_text(folder / "proof.json", write_proof_json(proof))
        write_text(folder / "public.json", write_public_json(curve, partition.statement))
        written.append(folder / "proof.json")
    _remove_others(out, written)
    write_text(out / "job.json", json.dumps(job, indent=1) + "\n")
    return written


def _remove_others(out: Path, written: list[Path]) -> None:
    """Remove the proofs of the job that was written here before: nobody may take them for ours."""
    try:
        n_before = int(json.loads((out / "job.json").read_text())["partitions_total"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    ours = {path.parent for path in written}
    for folder in (out / str(index) for index in range(min(n_before, _MOST_PARTITIONS))):
        if folder in ours or folder.is_symlink() or not folder.is_dir():
            continue
        (folder / "proof.json").unlink(missing_ok=True)
        (folder / "public.json").unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
