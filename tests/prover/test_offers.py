"""Offers: numbers that hold for every lease, or the reason why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.packed import PackedKeys
from partita.circuits.synthesis import peak_bytes
from partita.prover.core.model import NOTHING
from partita.prover.offers import Circuit, OfferRules, build_circuit
from tests.prover.circuits_on_disk import POWER_OF_TWO, add

if TYPE_CHECKING:
    from pathlib import Path

    from partita.circuits.catalogue import Entry

RULES = OfferRules("native", cores=2, check_rows_below=1 << 18)


def build(entry: Entry, root: Path, rules: OfferRules = RULES) -> Circuit:
    text = entry.manifest.to_json()
    packed = PackedKeys(root / "packed")
    return build_circuit("c", text, entry.manifest_sha256, CircuitFiles(root), packed, rules)


def test_the_peak_covers_synthesis_and_proof_and_shrinks_after_the_release(tmp_path: Path) -> None:
    entry = add(tmp_path, POWER_OF_TWO, wasm=True)
    circuit = build(entry, tmp_path)
    offer = circuit.offer
    assert not offer.unusable_reason
    assert offer.peak.host >= peak_bytes(entry.manifest, "circom.json")
    assert NOTHING.host < offer.after_release.host < offer.peak.host
    assert offer.key.host > entry.file("zkey").stat().st_size // 2
    assert offer.load_ns > 0
    assert offer.expected_ns > 0


def test_the_constraint_system_of_a_small_circuit_is_counted_with_its_key(tmp_path: Path) -> None:
    entry = add(tmp_path, POWER_OF_TWO)
    small = build(entry, tmp_path)
    large = build(entry, tmp_path, OfferRules("native", cores=2, check_rows_below=0))
    assert small.rows_always
    assert not large.rows_always
    assert small.offer.key.host > large.offer.key.host


def test_a_missing_file_makes_the_offer_unusable_and_names_it(tmp_path: Path) -> None:
    entry = add(tmp_path, POWER_OF_TWO)
    entry.file("zkey").unlink()
    assert "zkey" in build(entry, tmp_path).offer.unusable_reason


def test_a_manifest_with_another_digest_makes_the_offer_unusable(tmp_path: Path) -> None:
    entry = add(tmp_path, POWER_OF_TWO)
    text, packed = entry.manifest.to_json(), PackedKeys(tmp_path / "packed")
    circuit = build_circuit("c", text, b"d" * 32, CircuitFiles(tmp_path), packed, RULES)
    assert "manifest" in circuit.offer.unusable_reason
    assert circuit.manifest is None
