"""Stages: what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.packed import PackedKeys
from partita.circuits.wtns import read_wtns
from partita.groth16.errors import MismatchError, ResourceError
from partita.groth16.native import NativeBackend
from partita.prover.core.model import Bytes
from partita.prover.offers import Circuit, OfferRules, build_circuit
from partita.prover.stages import check_rows, load_key
from tests.prover.circuits_on_disk import ONE_CONSTRAINT, POWER_OF_TWO, add

if TYPE_CHECKING:
    from pathlib import Path

RULES = OfferRules("native", cores=2, check_rows_below=1 << 18)


@pytest.fixture
def circuit(tmp_path: Path) -> Circuit:
    entry = add(tmp_path, ONE_CONSTRAINT)
    text = entry.manifest.to_json()
    packed = PackedKeys(tmp_path / "packed")
    return build_circuit("c", text, entry.manifest_sha256, CircuitFiles(tmp_path), packed, RULES)


def test_a_key_fits_its_offer_and_is_refused_beyond_it(circuit: Circuit, tmp_path: Path) -> None:
    files, backend = CircuitFiles(tmp_path), NativeBackend()
    packed = PackedKeys(tmp_path / "packed")
    resident = load_key(circuit, files, packed, backend, circuit.offer.key, check_points=True)
    exact = resident.held
    assert exact.fits(circuit.offer.key)
    resident.release()
    with pytest.raises(ResourceError, match="its offer says"):
        load_key(circuit, files, packed, backend, Bytes(exact.host - 1), check_points=False)


def test_rows_of_another_circuit_s_witness_are_a_mismatch(circuit: Circuit, tmp_path: Path) -> None:
    files, backend = CircuitFiles(tmp_path), NativeBackend()
    packed = PackedKeys(tmp_path / "packed")
    resident = load_key(circuit, files, packed, backend, circuit.offer.key, check_points=False)
    other = read_wtns("other", (POWER_OF_TWO / "witness.wtns").read_bytes())
    with pytest.raises(MismatchError):
        check_rows(resident, other, files, backend, diagnose=False)
