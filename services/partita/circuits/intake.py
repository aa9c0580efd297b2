"""Taking a circom circuit into the catalogue: copy its files, check them, write its manifest.

What is checked is the copy that will be used: each file by itself, then that they belong together
(curve, wires, public inputs, rows), then every point of the proving key. The binary verifying key
is derived from the proving key here, so it cannot belong to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from partita.circuits.circom_program import CircomProgram
from partita.circuits.circom_run import PAGE_BYTES
from partita.circuits.container import map_file
from partita.circuits.manifest import Manifest, SynthesisLimits
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.symbols import check_symbols
from partita.circuits.wtns import wtns_size_bytes
from partita.circuits.zkey import read_zkey
from partita.groth16.errors import MismatchError
from partita.groth16.verifying_key import VerifyingKey

if TYPE_CHECKING:
    from pathlib import Path

    from partita.circuits.catalogue import Catalogue, Entry
    from partita.circuits.staging import Staging
    from partita.groth16.backend import Backend
    from partita.groth16.keys import ProvingKey

SYNTHESIS_TIME_MS: Final = 600_000
"""The time limit of witness programs: ten minutes, far above any circuit that is used."""

_MAX_MEMORY_BYTES: Final = 1 << 32
_SPARE_MEMORY_BYTES: Final = 64 << 20
_JSON_BYTES_OF_A_VALUE: Final = 128
_JSON_BYTES_OF_A_FILE: Final = 65_536


@dataclass(frozen=True, slots=True)
class CircuitSources:
    """The files of a circuit where its author left them; all but the key may be absent.

    Without `wasm` the circuit takes witnesses only; without `r1cs` a witness that does not fit
    cannot be told which row it breaks; without `sym` missing inputs are counted, not named.
    """

    zkey: Path
    wasm: Path | None = None
    r1cs: Path | None = None
    sym: Path | None = None


def add_circuit(
    catalogue: Catalogue,
    circuit_id: str,
    sources: CircuitSources,
    backend: Backend,
) -> Entry:
    """Check a circuit's files and add them under a name.

    Args:
        catalogue: where to.
        circuit_id: the name.
        sources: the files.
        backend: checks every point of the key for curve and subgroup.

    Returns:
        The entry; adding the same files again changes nothing.

    Raises:
        InputError: a file is malformed, the files do not belong together, or the name is no name
            or bound to other files. Nothing was added.
        OSError: a file cannot be read or the catalogue not be written.
    """
    with catalogue.stage(circuit_id) as staging:
        given = {
            role: path
            for role in ("zkey", "wasm", "r1cs", "sym")
            if (path := getattr(sources, role)) is not None
        }
        staged = {role: staging.copy(role, path) for role, path in given.items()}
        key = read_zkey(str(given["zkey"]), map_file(staged["zkey"]))
        n_constraints = key.matrix_a.n_rows - key.n_public - 1
        if "r1cs" in given:
            _check_r1cs(str(given["r1cs"]), staged["r1cs"], key, n_constraints)
        if "sym" in given:
            check_symbols(str(given["sym"]), map_file(staged["sym"]), n_wires=key.n_wires)
        program = None
        if "wasm" in given:
            program = CircomProgram(str(given["wasm"]), map_file(staged["wasm"]))
            _check_program(program, key)
        backend.load(key, check=True).release()
        staging.write("vk", VerifyingKey.of_proving_key(key).to_bytes())
        return staging.publish(_manifest(staging, key, n_constraints, program))


def _manifest(
    staging: Staging,
    key: ProvingKey,
    n_constraints: int,
    program: CircomProgram | None,
) -> Manifest:
    input_formats = {"wtns": wtns_size_bytes(key.n_wires)}
    limits = None
    if program is not None:
        input_formats["circom.json"] = (
            _JSON_BYTES_OF_A_FILE + _JSON_BYTES_OF_A_VALUE * program.n_inputs
        )
        limits = SynthesisLimits(_memory_limit_bytes(program), SYNTHESIS_TIME_MS)
    return Manifest(
        curve=key.curve,
        family=key.family,
        n_public=key.n_public,
        n_wires=key.n_wires,
        n_constraints=n_constraints,
        domain_size=key.domain_size,
        input_formats=input_formats,
        limits=limits,
        files=dict(staging.files),
    )


def _memory_limit_bytes(program: CircomProgram) -> int:
    """Programs of circom ask for what they need at the start; the rest is for those that grow."""
    most = max(program.initial_memory_bytes, wtns_size_bytes(program.n_wires)) * 2
    return min(most + _SPARE_MEMORY_BYTES, _MAX_MEMORY_BYTES) // PAGE_BYTES * PAGE_BYTES


def _check_r1cs(source: str, path: Path, key: ProvingKey, n_constraints: int) -> None:
    r1cs = read_r1cs(source, map_file(path))
    for field, expected, found in (
        ("curve", key.curve, r1cs.curve),
        ("number of wires", key.n_wires, r1cs.n_wires),
        ("number of public inputs", key.n_public, r1cs.n_public),
        ("number of constraints", n_constraints, r1cs.n_rows),
    ):
        if found != expected:
            raise MismatchError(field, expected, found, f"{source} and the key do not fit")


def _check_program(program: CircomProgram, key: ProvingKey) -> None:
    for field, expected, found in (
        ("curve", key.curve, program.curve.name),
        ("number of wires", key.n_wires, program.n_wires),
    ):
        if found != expected:
            raise MismatchError(
                field,
                expected,
                found,
                f"{program.source} and the key do not fit: make them from one compilation",
            )
