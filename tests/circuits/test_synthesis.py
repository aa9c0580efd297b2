"""Synthesizers by input format, and what they need at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue, Entry
from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.intake import CircuitSources, add_circuit
from partita.circuits.synthesis import open_synthesizer, peak_bytes
from partita.groth16.errors import FormatError, MismatchError
from tests.circuits.circuit_vectors import ShapeBackend, edge

ONE = edge("one-constraint")


def added(root: Path, *, wasm: bool = True) -> Entry:
    sources = CircuitSources(
        ONE.path / "circuit.zkey", wasm=ONE.path / "circuit.wasm" if wasm else None
    )
    return add_circuit(Catalogue(root), "it", sources, ShapeBackend())


def test_a_witness_of_another_circuit_or_curve_is_refused(tmp_path: Path) -> None:
    maker = open_synthesizer(added(tmp_path).manifest, "wtns", CircuitFiles(tmp_path))
    with pytest.raises(MismatchError, match="number of wires differs: expected 4, found 28"):
        maker.synthesize(edge("shapes").read("witness.wtns"), source="job input 3")
    with pytest.raises(MismatchError, match="curve differs: expected bn254, found bls12-381"):
        maker.synthesize(edge("one-constraint", "bls12-381").read("witness.wtns"))
    with pytest.raises(FormatError, match="job input 3, byte 0: starts with"):
        maker.synthesize(b"{}" * 10, source="job input 3")


@pytest.mark.parametrize("input_format", ["circom.json", "filecoin.partition", ""])
def test_a_format_that_the_circuit_does_not_take_is_refused(
    tmp_path: Path, input_format: str
) -> None:
    entry = added(tmp_path, wasm=False)
    with pytest.raises(FormatError, match="is no input format of this circuit; use wtns"):
        open_synthesizer(entry.manifest, input_format, CircuitFiles(tmp_path))


def test_a_program_that_was_altered_is_not_run(tmp_path: Path) -> None:
    program = tmp_path / "own.wasm"
    program.write_bytes(ONE.read("circuit.wasm") + b"\0\1\0")  # an empty custom section
    entry = add_circuit(
        Catalogue(tmp_path / "circuits"),
        "it",
        CircuitSources(ONE.path / "circuit.zkey", wasm=program),
        ShapeBackend(),
    )
    entry.file("wasm").write_bytes(ONE.read("circuit.wasm"))
    files = CircuitFiles(tmp_path / "circuits")
    with pytest.raises(FormatError, match=r"it/wasm was altered: expected SHA-256"):
        open_synthesizer(entry.manifest, "circom.json", files)
    entry.file("wasm").unlink()
    with pytest.raises(FormatError, match="is on this machine"):
        open_synthesizer(entry.manifest, "circom.json", files)


def test_a_synthesis_is_announced_with_input_program_and_witness(tmp_path: Path) -> None:
    manifest = added(tmp_path).manifest
    assert manifest.limits is not None
    assert peak_bytes(manifest, "wtns") == 204
    text_bytes = manifest.input_formats["circom.json"]
    assert (
        peak_bytes(manifest, "circom.json")
        == 33 * text_bytes + manifest.limits.memory_bytes + 2 * 4 * 32
    )
