"""What the stages of a lease do, each as one blocking call for a thread.

Not here: threads, queues, who runs when. Every function leaves nothing mapped behind when it
raises.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.circuits.errors import PackingError
from partita.circuits.key_source import key_source, require_counts, source_sha256
from partita.circuits.r1cs_file import read_r1cs
from partita.groth16 import selftest
from partita.groth16.errors import FormatError, ResourceError, UnsatisfiedError
from partita.prover.core.model import Bytes
from partita.prover.offers import r1cs_bytes
from partita.service import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.manifest import Manifest
    from partita.circuits.packed import PackedKey, PackedKeys
    from partita.groth16.backend import Backend, LoadedKey
    from partita.groth16.keys import ProvingKey
    from partita.groth16.r1cs import R1cs
    from partita.groth16.witness import Witness
    from partita.prover.inputs import InputBuffer
    from partita.prover.offers import Circuit


_log = logs.get("keys")


@dataclass(slots=True)
class ResidentKey:
    """A proving key in memory with what belongs to it.

    Attributes:
        circuit: the circuit it was loaded for.
        manifest: the circuit's manifest.
        key: the backend's key.
        r1cs: the constraint system, of small circuits only.
        held: what all of it occupies.
        packed: the packed file it came from, kept from removal; None without one.
    """

    circuit: Circuit
    manifest: Manifest
    key: LoadedKey
    r1cs: R1cs | None
    held: Bytes
    packed: PackedKey | None

    def release(self) -> None:
        """Give back the key's memory and the use of its packed file."""
        self.key.release()
        if self.packed is not None:
            self.packed.close()


def load_key(
    circuit: Circuit,
    files: CircuitFiles,
    packed_keys: PackedKeys,
    backend: Backend,
    limit: Bytes,
    *,
    check_points: bool,
) -> ResidentKey:
    """Load the proving key of a circuit from its packed file, which is made if it is not there.

    Where it cannot be made, the key is read from the circuit's own files, and that is logged.

    Args:
        circuit: a usable circuit.
        files: where its files are found.
        packed_keys: where packed files are found.
        backend: whose memory it goes to.
        limit: the most it may occupy.
        check_points: without a packed file, whether to check every point; not needed again for a
            digest that passed once.

    Raises:
        InputError: a file is missing, altered or malformed.
        ResourceError: memory was refused, or the key takes more than the limit.
    """
    manifest = circuit.manifest
    if manifest is None:
        raise FormatError("manifest", f"circuit {circuit.offer.circuit_id} has none that is usable")
    r1cs, rows_bytes = None, 0
    if circuit.rows_always:
        r1cs, rows_bytes = _open_r1cs(manifest, files)
    with ExitStack() as held:
        packed = None
        try:
            packed = packed_keys.obtain(
                source_sha256(manifest.files), lambda: key_source(manifest, files)
            )
        except PackingError as error:
            _log.warning("key.not_packed", circuit_id=circuit.offer.circuit_id, reason=str(error))
            parsed, check = _whole(manifest, files, limit, error, check_points=check_points)
        else:
            held.callback(packed.close)
            parsed, check = packed.key(), False
            require_counts(manifest, parsed)
        key = backend.load(parsed, check=check)
        held.callback(key.release)
        del parsed
        if packed is not None:
            packed.unmap()
        size = Bytes(key.size_bytes + rows_bytes)
        if not size.fits(limit):
            raise ResourceError(f"the key occupies {size.host} bytes, its offer says {limit.host}")
        held.pop_all()
    return ResidentKey(circuit, manifest, key, r1cs, size, packed)


def check_key(resident: ResidentKey, backend: Backend) -> None:
    """Check a loaded key as a whole: the last step of its first loading in a process.

    Its scratch is less than a lease's peak, and a key is loaded for a lease that waits for it.

    Raises:
        ComputeError: a query is not linear, or the B queries differ; the key is released.
        ResourceError: memory was refused; the key is released.
    """
    try:
        selftest.require(selftest.consistency(backend, resident.key))
    except BaseException:
        resident.release()
        raise


def _whole(
    manifest: Manifest,
    files: CircuitFiles,
    limit: Bytes,
    error: PackingError,
    *,
    check_points: bool,
) -> tuple[ProvingKey, bool]:
    """The key without a packed file, and whether its points are still to be checked."""
    source = key_source(manifest, files)
    if 2 * source.whole_size_bytes > limit.host:
        raise ResourceError(
            f"{error}; without a packed file the key takes {2 * source.whole_size_bytes} bytes "
            f"while it is loaded, its offer says {limit.host}"
        )
    return source.whole(), check_points and not source.whole_is_checked


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
