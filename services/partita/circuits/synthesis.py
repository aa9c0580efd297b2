"""From a partition's input to its witness: one synthesizer for each input format.

A synthesizer belongs to one circuit and is made once, from its manifest and files. What a
synthesis needs at most is a formula of the manifest (`peak_bytes`), so that a prover can announce
it before it has seen any input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from partita.circuits.circom import CircomSynthesizer
from partita.circuits.circom_program import ProgramCache, never
from partita.circuits.circom_run import RunLimits
from partita.circuits.elements import ELEMENT_BYTES
from partita.circuits.wtns import read_wtns
from partita.groth16.errors import FormatError, MismatchError

if TYPE_CHECKING:
    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.manifest import Manifest
    from partita.groth16.witness import Witness

_INPUT_RECORD_FACTOR: Final = 32
"""Bytes of Python objects for each byte of a JSON input, at most: a list slot and an integer of
72 bytes for a value of at least two bytes, twice while it is flattened."""


class Synthesizer(Protocol):
    """Makes the witnesses of one circuit from inputs of one format. Thread-safe."""

    def synthesize(
        self,
        data: bytes | memoryview,
        *,
        source: str = "input",
        stop: Callable[[], bool] = never,
    ) -> Witness:
        """The witness of an input.

        Args:
            data: the input's bytes.
            source: its name, for errors.
            stop: asked now and then, from any thread; True ends the synthesis.

        Raises:
            InputError: the input, or the circuit's program, is to blame.
            SynthesisStoppedError: `stop` said so.
        """
        ...


class WtnsSynthesizer:
    """Takes a finished witness and checks that it has the size and curve of the circuit."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def synthesize(
        self,
        data: bytes | memoryview,
        *,
        source: str = "input",
        stop: Callable[[], bool] = never,  # noqa: ARG002 - it is over before anyone could ask
    ) -> Witness:
        """The witness in a .wtns file; its values are a view of `data`.

        Raises:
            FormatError: malformed.
            MismatchError: it is the witness of another circuit.
        """
        witness = read_wtns(source, data)
        hint = f"{source} is the witness of another circuit"
        if witness.curve != self._manifest.curve:
            raise MismatchError("curve", self._manifest.curve, witness.curve, hint)
        if witness.n_wires != self._manifest.n_wires:
            raise MismatchError("number of wires", self._manifest.n_wires, witness.n_wires, hint)
        return witness


_PROGRAMS: Final = ProgramCache()


def _open_circom(manifest: Manifest, files: CircuitFiles) -> Synthesizer:
    limits = manifest.limits
    if limits is None:
        raise FormatError("manifest", "has no limits for its witness program", section="limits")
    digest = manifest.files["wasm"]
    program = _PROGRAMS.get(digest, "wasm", lambda: files.open("wasm", digest))
    if program.curve.name != manifest.curve:
        raise MismatchError("curve of the wasm", manifest.curve, program.curve.name)
    if program.n_wires != manifest.n_wires:
        raise MismatchError("number of wires of the wasm", manifest.n_wires, program.n_wires)
    symbols = manifest.files.get("sym")
    return CircomSynthesizer(
        program,
        RunLimits(limits.memory_bytes, limits.time_ms * 1_000_000),
        files.open("sym", symbols) if symbols is not None else None,
    )


_OPENERS: Final[Mapping[str, Callable[[Manifest, CircuitFiles], Synthesizer]]] = {
    "wtns": lambda manifest, _: WtnsSynthesizer(manifest),
    "circom.json": _open_circom,
}


def open_synthesizer(manifest: Manifest, input_format: str, files: CircuitFiles) -> Synthesizer:
    """The synthesizer of a circuit for an input format.

    Args:
        manifest: the circuit.
        input_format: one of the manifest's.
        files: where its files are found.

    Raises:
        FormatError: the circuit does not take this format, or a file is missing or altered.
        ProgramError, MismatchError: the witness program is unusable, or of another circuit.
    """
    if input_format not in manifest.input_formats or input_format not in _OPENERS:
        raise FormatError(
            input_format,
            f"is no input format of this circuit; use {' or '.join(manifest.input_formats)}",
        )
    return _OPENERS[input_format](manifest, files)


def peak_bytes(manifest: Manifest, input_format: str) -> int:
    """The most host bytes that one synthesis holds, input and witness included.

    `wtns`: the input, of which the witness is a view. `circom.json`: the text and the objects
    made of it, the records that feed the program, the program's memory, and the witness twice
    while it is copied out.
    """
    input_bytes = manifest.input_formats[input_format]
    if manifest.limits is None or input_format == "wtns":
        return input_bytes
    witness_bytes = manifest.n_wires * ELEMENT_BYTES
    return (
        input_bytes * (1 + _INPUT_RECORD_FACTOR) + manifest.limits.memory_bytes + 2 * witness_bytes
    )
