"""Taking a circuit into the catalogue: copy its files, check them, write its manifest.

What is checked is the copy that will be used: each file by itself, then that they belong together
(curve, wires, public inputs, rows), then every point of the proving key. The binary verifying key
is derived from the proving key here, so it cannot belong to another.

A circuit comes with its proving key (`add_circuit`), or one is made for it (`set_up_circuit`),
which is for development only: the entry says `insecure`, and so does every entry whose key file
says that a development set-up made it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from partita.circuits.bellperson import write_params
from partita.circuits.circom_program import CircomProgram
from partita.circuits.circom_run import PAGE_BYTES
from partita.circuits.container import map_file
from partita.circuits.development import is_development_key
from partita.circuits.errors import PackingError
from partita.circuits.key_source import (
    computed_source,
    params_source,
    source_sha256,
    zkey_source,
)
from partita.circuits.manifest import Manifest, SynthesisLimits
from partita.circuits.packed import silent
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.symbols import check_symbols
from partita.circuits.wtns import wtns_size_bytes
from partita.circuits.zkey_writer import write_zkey
from partita.groth16.errors import InputError, MismatchError
from partita.groth16.keys import KeyFamily, Query
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifying_key import VerifyingKey

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from partita.circuits.catalogue import Catalogue, Entry
    from partita.circuits.key_source import KeySource
    from partita.circuits.packed import PackedKeys, Progress
    from partita.circuits.staging import Staging
    from partita.groth16.backend import Backend
    from partita.groth16.keys import ProvingKey
    from partita.groth16.r1cs import R1cs

SYNTHESIS_TIME_MS: Final = 600_000
"""The time limit of witness programs: ten minutes, far above any circuit that is used."""

_log = logging.getLogger(__name__)

_MAX_MEMORY_BYTES: Final = 1 << 32
_SPARE_MEMORY_BYTES: Final = 64 << 20
_JSON_BYTES_OF_A_VALUE: Final = 128
_JSON_BYTES_OF_A_FILE: Final = 65_536


@dataclass(frozen=True, slots=True)
class CircuitSources:
    """The files of a circuit where its author left them; most may be absent.

    The key is a `zkey` of snarkjs or the `params` of bellperson; the latter cannot be read without
    the `r1cs`. Without `wasm` the circuit takes witnesses only; without `r1cs` a witness that does
    not fit cannot be told which row it breaks; without `sym` missing inputs are counted, not named.
    """

    zkey: Path | None = None
    wasm: Path | None = None
    r1cs: Path | None = None
    sym: Path | None = None
    params: Path | None = None

    def __post_init__(self) -> None:
        """Refuse two keys."""
        if self.zkey is not None and self.params is not None:
            raise InputError("a circuit has one key: give a .zkey or a .params, not both")

    def given(self) -> dict[str, Path]:
        """The files that are there, by role."""
        roles = ("zkey", "params", "wasm", "r1cs", "sym")
        return {role: path for role in roles if (path := getattr(self, role)) is not None}


def add_circuit(
    catalogue: Catalogue,
    circuit_id: str,
    sources: CircuitSources,
    backend: Backend,
    packed_keys: PackedKeys | None = None,
    progress: Progress = silent,
) -> Entry:
    """Check a circuit's files and add them under a name.

    Args:
        catalogue: where to.
        circuit_id: the name.
        sources: the files, a key among them.
        backend: checks every point of the key for curve and subgroup where it is not packed.
        packed_keys: where the key is packed, which checks every point too. A disk without room
            for it is logged, and the circuit is added all the same.
        progress: told the bytes packed.

    Returns:
        The entry; adding the same files again changes nothing.

    Raises:
        InputError: a file is malformed, the files do not belong together, or the name is no name
            or bound to other files. Nothing was added.
        OSError: a file cannot be read or the catalogue not be written.
    """
    given = sources.given()
    with catalogue.stage(circuit_id) as staging:
        staged = {role: staging.copy(role, path) for role, path in given.items()}
        r1cs = None
        if "r1cs" in given:
            r1cs = read_r1cs(str(given["r1cs"]), map_file(staged["r1cs"]))
        role = next((role for role in ("zkey", "params") if role in given), None)
        if role is None:
            raise InputError("the circuit has no key: give a .zkey or a .params, or set one up")
        name, data = str(given[role]), map_file(staged[role])
        if role == "zkey":
            source = zkey_source(name, data)
        elif r1cs is None:
            raise InputError(f"{name}: cannot be read without the .r1cs of its circuit")
        else:
            source = params_source(name, data, r1cs)
        insecure = is_development_key(role, name, data)
        key = source.frame
        program = _check_parts(given, staged, key, r1cs)
        _check_points(staging, source, backend, packed_keys, progress)
        staging.write("vk", VerifyingKey.of_proving_key(key).to_bytes())
        return staging.publish(_manifest(staging, key, program, insecure=insecure))


def set_up_circuit(
    catalogue: Catalogue,
    circuit_id: str,
    sources: CircuitSources,
    family: KeyFamily,
    seed: bytes | None = None,
    packed_keys: PackedKeys | None = None,
    progress: Progress = silent,
) -> Entry:
    """Make a circuit's proving key and add it under a name. INSECURE: for development only.

    Args:
        catalogue: where to.
        circuit_id: the name.
        sources: the files, the constraints among them and no key.
        family: the conventions of the key; bellperson's files are of BLS12-381 only.
        seed: makes the same key each time, and everyone who knows it a forger; None draws from
            the system's randomness.
        packed_keys: where the key is packed; a disk without room for it is logged, and the
            circuit is added all the same.
        progress: told the bytes packed.

    Returns:
        The entry, marked insecure.

    Raises:
        InputError, OSError: as `add_circuit`.
        ResourceError: memory was refused.
    """
    given = sources.given()
    if "zkey" in given or "params" in given:
        raise InputError("a set-up makes the key: give none")
    if "r1cs" not in given:
        raise InputError("a set-up needs the .r1cs of the circuit")
    with catalogue.stage(circuit_id) as staging:
        staged = {role: staging.copy(role, path) for role, path in given.items()}
        r1cs = read_r1cs(str(given["r1cs"]), map_file(staged["r1cs"]))
        if seed is None:
            waste = ToxicWaste.random(r1cs.curve)
        else:
            waste = ToxicWaste.from_seed(r1cs.curve, seed)
        key = set_up(r1cs, family, waste)
        program = _check_parts(given, staged, key, r1cs)
        if family is KeyFamily.SNARKJS:
            path = staging.create("zkey", lambda file: write_zkey(file, key))
            source = zkey_source(str(path), map_file(path))
        else:
            path = staging.create("params", lambda file: _write_params(file, key))
            source = params_source(str(path), map_file(path), r1cs)
        _pack(staging, computed_source(key, source), packed_keys, progress)
        staging.write("vk", VerifyingKey.of_proving_key(key).to_bytes())
        return staging.publish(_manifest(staging, key, program, insecure=True))


def _write_params(file: BinaryIO, key: ProvingKey) -> None:
    file.writelines(write_params(key, development=True))


def _check_points(
    staging: Staging,
    source: KeySource,
    backend: Backend,
    packed_keys: PackedKeys | None,
    progress: Progress,
) -> None:
    """Check every point of a key: by packing it where that is possible."""
    if _pack(staging, source, packed_keys, progress):
        return
    if source.whole_is_checked:
        for query in Query:
            for _ in source.chunks(query):
                pass
    else:
        backend.load(source.whole(), check=True).release()


def _pack(
    staging: Staging, source: KeySource, packed_keys: PackedKeys | None, progress: Progress
) -> bool:
    """Pack a key, which checks every point that was not computed here; whether it was possible."""
    if packed_keys is None:
        return False
    try:
        packed_keys.obtain(source_sha256(staging.files), lambda: source, progress).close()
    except PackingError as error:
        _log.warning("the key is not packed, provers will try again: %s", error)
        return False
    return True


def _check_parts(
    given: dict[str, Path], staged: dict[str, Path], key: ProvingKey, r1cs: R1cs | None
) -> CircomProgram | None:
    """Check that the files fit the key; returns the witness program, if there is one."""
    if r1cs is not None:
        _check_r1cs(str(given["r1cs"]), r1cs, key)
    if "sym" in given:
        check_symbols(str(given["sym"]), map_file(staged["sym"]), n_wires=key.n_wires)
    if "wasm" not in given:
        return None
    program = CircomProgram(str(given["wasm"]), map_file(staged["wasm"]))
    _check_program(program, key)
    return program


def _manifest(
    staging: Staging, key: ProvingKey, program: CircomProgram | None, *, insecure: bool
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
        n_constraints=_n_constraints(key),
        domain_size=key.domain_size,
        input_formats=input_formats,
        limits=limits,
        files=dict(staging.files),
        insecure=insecure,
    )


def _n_constraints(key: ProvingKey) -> int:
    """The rows of the circuit, without those that bind the constant and the public wires."""
    return key.matrix_a.n_rows - key.n_public - 1


def _memory_limit_bytes(program: CircomProgram) -> int:
    """Programs of circom ask for what they need at the start; the rest is for those that grow."""
    most = max(program.initial_memory_bytes, wtns_size_bytes(program.n_wires)) * 2
    return min(most + _SPARE_MEMORY_BYTES, _MAX_MEMORY_BYTES) // PAGE_BYTES * PAGE_BYTES


def _check_r1cs(source: str, r1cs: R1cs, key: ProvingKey) -> None:
    for field, expected, found in (
        ("curve", key.curve, r1cs.curve),
        ("number of wires", key.n_wires, r1cs.n_wires),
        ("number of public inputs", key.n_public, r1cs.n_public),
        ("number of constraints", _n_constraints(key), r1cs.n_rows),
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
