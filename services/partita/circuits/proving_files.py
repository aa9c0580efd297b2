"""What a prover reads of a circuit beside its witness program: proving key and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.zkey import read_zkey
from partita.groth16.errors import MismatchError

if TYPE_CHECKING:
    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.manifest import Manifest
    from partita.groth16.keys import ProvingKey
    from partita.groth16.r1cs import R1cs


def open_proving_key(manifest: Manifest, files: CircuitFiles) -> ProvingKey:
    """The proving key of a circuit; its queries are views of the mapped file.

    The file's digest is compared, so a backend may load it without checking points: they were
    checked when the circuit was added under this digest.

    Raises:
        FormatError: the file is not here, or was altered, or is no key.
        MismatchError: the manifest says another curve or other counts.
    """
    key = read_zkey("zkey", files.open("zkey", manifest.files["zkey"]))
    _compare(manifest, "zkey", key)
    if key.domain_size != manifest.domain_size:
        raise MismatchError("domain size of the zkey", manifest.domain_size, key.domain_size)
    return key


def open_r1cs(manifest: Manifest, files: CircuitFiles) -> R1cs | None:
    """The constraint system of a circuit, or None if the circuit was added without.

    Raises:
        FormatError: the file is not here, or was altered, or is no constraint system.
        MismatchError: the manifest says another curve or other counts.
    """
    digest = manifest.files.get("r1cs")
    if digest is None:
        return None
    r1cs = read_r1cs("r1cs", files.open("r1cs", digest))
    _compare(manifest, "r1cs", r1cs)
    return r1cs


def _compare(manifest: Manifest, role: str, found: ProvingKey | R1cs) -> None:
    for field, expected, other in (
        ("curve", manifest.curve, found.curve),
        ("number of wires", manifest.n_wires, found.n_wires),
        ("number of public inputs", manifest.n_public, found.n_public),
    ):
        if other != expected:
            raise MismatchError(f"{field} of the {role}", expected, other)
