"""A prover's files of a circuit, compared with its manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue, Entry
from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.intake import CircuitSources, add_circuit
from partita.circuits.proving_files import open_proving_key, open_r1cs
from partita.groth16.errors import FormatError, MismatchError
from tests.circuits.circuit_vectors import ShapeBackend, edge

ONE = edge("one-constraint")


def added(root: Path, *, r1cs: bool = True) -> Entry:
    sources = CircuitSources(
        ONE.path / "circuit.zkey", r1cs=ONE.path / "circuit.r1cs" if r1cs else None
    )
    return add_circuit(Catalogue(root), "it", sources, ShapeBackend())


def test_key_and_rows_are_read_from_the_catalogue(tmp_path: Path) -> None:
    manifest = added(tmp_path).manifest
    files = CircuitFiles(tmp_path)
    assert open_proving_key(manifest, files).n_wires == 4
    rows = open_r1cs(manifest, files)
    assert rows is not None
    assert rows.n_rows == 1


def test_a_circuit_may_have_no_rows(tmp_path: Path) -> None:
    assert open_r1cs(added(tmp_path, r1cs=False).manifest, CircuitFiles(tmp_path)) is None


def test_files_that_do_not_fit_their_manifest_are_refused(tmp_path: Path) -> None:
    """A manifest from afar may say anything of the files that it names."""
    manifest = added(tmp_path).manifest
    files = CircuitFiles(tmp_path)
    for changes, field in (
        ({"curve": "bls12-381"}, "curve"),
        ({"n_wires": 5}, "number of wires"),
        ({"n_public": 2}, "number of public inputs"),
    ):
        wrong = dataclasses.replace(manifest, **changes)
        with pytest.raises(MismatchError, match=f"{field} of the zkey differs"):
            open_proving_key(wrong, files)
        with pytest.raises(MismatchError, match=f"{field} of the r1cs differs"):
            open_r1cs(wrong, files)
    with pytest.raises(MismatchError, match="domain size of the zkey differs: expected 8"):
        open_proving_key(dataclasses.replace(manifest, domain_size=8), files)


def test_a_key_that_was_altered_is_not_read(tmp_path: Path) -> None:
    entry = added(tmp_path)
    data = bytearray(entry.file("zkey").read_bytes())
    data[-1] ^= 1
    entry.file("zkey").write_bytes(data)
    with pytest.raises(FormatError, match="was altered"):
        open_proving_key(entry.manifest, CircuitFiles(tmp_path))
