"""What the stages of a lease do, each as one blocking call for a thread.

Not here: threads, queues, who runs when. Every function leaves nothing mapped behind when it
raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.zkey import read_zkey
from partita.groth16.errors import FormatError, MismatchError, ResourceError, UnsatisfiedError
from partita.prover.core.model import Bytes
from partita.prover.offers import r1cs_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.manifest import Manifest
    from partita.groth16.backend import Backend, LoadedKey
    from partita.groth16.r1cs import R1cs
    from partita.groth16.witness import Witness
    from partita.prover.inputs import InputBuffer
    from partita.prover.offers import Circuit


@dataclass(slots=True)
class ResidentKey:
    """A proving key in memory with what belongs to it.

    Attributes:
        circuit: the circuit it was loaded for.
        manifest: the circuit's manifest.
        key: the backend's key.
        r1cs: the constraint system, of small circuits only.
        held: what all of it occupies.
    """

    circuit: Circuit
    manifest: Manifest
    key: LoadedKey
    r1cs: R1cs | None
    held: Bytes


def load_key(
    circuit: Circuit, files: CircuitFiles, backend: Backend, limit: Bytes, *, check_points: bool
) -> ResidentKey:
    """Load the proving key of a circuit.

    Args:
        circuit: a usable circuit.
        files: where its files are found.
        backend: whose memory it goes to.
        limit: the most it may occupy.
        check_points: check every point; not needed again for a digest that passed once.

    Raises:
        InputError: a file is missing, altered or malformed.
        ResourceError: memory was refused, or the key takes more than the limit.
    """
    manifest = circuit.manifest
    if manifest is None:
        raise FormatError("manifest", f"circuit {circuit.offer.circuit_id} has none that is usable")
    parsed = read_zkey("zkey", files.open("zkey", manifest.files["zkey"]))
    for name in ("curve", "n_public", "n_wires", "domain_size"):
        if getattr(parsed, name) != getattr(manifest, name):
            raise MismatchError(
                f"{name} of the zkey", getattr(manifest, name), getattr(parsed, name)
            )
    r1cs, rows_bytes = None, 0
    if circuit.rows_always:
        r1cs, rows_bytes = _open_r1cs(manifest, files)
    key = backend.load(parsed, check=check_points)
    held = Bytes(key.size_bytes + rows_bytes)
    if not held.fits(limit):
        key.release()
        raise ResourceError(f"the key occupies {held.host} bytes, its offer says {limit.host}")
    return ResidentKey(circuit, manifest, key, r1cs, held)


def synthesize(
    resident: ResidentKey,
    buffer: InputBuffer,
    input_format: str,
    stop: Callable[[], bool],
) -> Witness:
    """Make the witness of an input.

    Raises:
        InputError: the input is to blame.
        SynthesisStoppedError: `stop` said so.
    """
    synthesizer = resident.circuit.synthesizers.get(input_format)
    if synthesizer is None:
        known = " or ".join(resident.circuit.synthesizers)
        raise FormatError("input_format", f"{input_format!r} is not taken here; use {known}")
    return synthesizer.synthesize(buffer.data, source="input", stop=stop)


def check_rows(
    resident: ResidentKey,
    witness: Witness,
    files: CircuitFiles,
    backend: Backend,
    *,
    diagnose: bool,
) -> None:
    """Check a witness against the constraint system where there is one and it is worth it.

    Raises:
        UnsatisfiedError: names the first row that the witness breaks.
        InputError: witness and constraint system do not belong together.
    """
    r1cs = resident.r1cs
    if r1cs is None and diagnose and "r1cs" in resident.manifest.files:
        r1cs, _ = _open_r1cs(resident.manifest, files)
    if r1cs is None:
        return
    row = backend.check_rows(r1cs, witness)
    if row is not None:
        raise UnsatisfiedError(row, r1cs.n_rows)


def _open_r1cs(manifest: Manifest, files: CircuitFiles) -> tuple[R1cs, int]:
    data = files.open("r1cs", manifest.files["r1cs"])
    return read_r1cs("r1cs", data), r1cs_bytes(len(data))
