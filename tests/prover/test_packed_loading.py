"""Keys come from packed files: warm loads skip the source, a full disk costs time only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from partita.circuits.catalogue import Catalogue
from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.errors import PackingError
from partita.circuits.intake import CircuitSources, set_up_circuit
from partita.circuits.packed import PackedKeys
from partita.circuits.wtns import read_wtns
from partita.groth16.errors import ResourceError
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.verifier import Verifier
from partita.prover.offers import Circuit, OfferRules, build_circuit
from partita.prover.stages import ResidentKey, load_key
from tests.prover.circuits_on_disk import ONE_CONSTRAINT, POWER_OF_TWO, VECTORS, add
from tests.small_disk import small_disk

if TYPE_CHECKING:
    from partita.circuits.catalogue import Entry

RULES = OfferRules("native", cores=2, check_rows_below=0)
BLS = VECTORS / "power-of-two-bls12-381"


def offered(root: Path, entry: Entry, packed: PackedKeys) -> Circuit:
    text = entry.manifest.to_json()
    return build_circuit("c", text, entry.manifest_sha256, CircuitFiles(root), packed, RULES)


def load(root: Path, circuit: Circuit, packed: PackedKeys) -> ResidentKey:
    files, limit = CircuitFiles(root), circuit.offer.key
    return load_key(circuit, files, packed, NativeBackend(), limit, check_points=True)


def bellperson(root: Path) -> Entry:
    """A circuit with a development key of bellperson."""
    sources = CircuitSources(r1cs=BLS / "circuit.r1cs")
    return set_up_circuit(Catalogue(root), "it", sources, KeyFamily.BELLPERSON, b"seed")


@pytest.fixture
def packed(tmp_path: Path) -> PackedKeys:
    return PackedKeys(tmp_path / "packed")


def test_a_second_load_needs_the_packed_file_only(tmp_path: Path, packed: PackedKeys) -> None:
    entry = add(tmp_path, ONE_CONSTRAINT)
    circuit = offered(tmp_path, entry, packed)
    load(tmp_path, circuit, packed).release()
    entry.file("zkey").write_bytes(b"altered")
    again = offered(tmp_path, entry, packed)
    assert again.offer == circuit.offer
    resident = load(tmp_path, again, packed)
    assert resident.packed is not None
    resident.release()


def test_the_offered_load_time_holds_packing_and_the_check_until_they_are_done(
    tmp_path: Path, packed: PackedKeys
) -> None:
    circuit = offered(tmp_path, add(tmp_path, ONE_CONSTRAINT), packed)
    checked = {circuit.offer.manifest_sha256}
    cold = circuit.offer_now(packed, ()).load_ns
    load(tmp_path, circuit, packed).release()
    first = circuit.offer_now(packed, ()).load_ns
    again = circuit.offer_now(packed, checked).load_ns
    assert cold - first == circuit.pack_ns > 0
    assert first - again == circuit.check_ns > 0
    assert again == circuit.offer.load_ns > 0


def test_a_resident_key_s_file_is_not_removed_and_a_released_one_s_is(
    tmp_path: Path, packed: PackedKeys
) -> None:
    first = offered(tmp_path, add(tmp_path, ONE_CONSTRAINT), packed)
    second = offered(tmp_path, add(tmp_path, POWER_OF_TWO), packed)
    resident = load(tmp_path, first, packed)
    path = packed.path_of(first.source_sha256)
    load(tmp_path, second, packed).release()
    larger = packed.path_of(second.source_sha256)
    tight = PackedKeys(packed.folder, larger.stat().st_size)
    larger.unlink()
    assert load(tmp_path, second, tight).packed is None
    assert path.exists()
    resident.release()
    kept = load(tmp_path, second, tight)
    assert kept.packed is not None
    assert not path.exists()
    kept.release()


def test_a_damaged_packed_file_is_made_again_by_the_load(
    tmp_path: Path, packed: PackedKeys
) -> None:
    circuit = offered(tmp_path, add(tmp_path, ONE_CONSTRAINT), packed)
    load(tmp_path, circuit, packed).release()
    path = packed.path_of(circuit.source_sha256)
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    load(tmp_path, circuit, packed).release()
    assert path.read_bytes() == good


def test_a_bellperson_key_is_packed_loaded_and_proves(tmp_path: Path, packed: PackedKeys) -> None:
    entry = bellperson(tmp_path)
    resident = load(tmp_path, offered(tmp_path, entry, packed), packed)
    witness = read_wtns("w", (BLS / "witness.wtns").read_bytes())
    proof = prove(NativeBackend(), resident.key, witness)
    statement = witness.statement(entry.manifest.n_public)
    assert Verifier(entry.verifying_key()).verify(statement, proof.to_bytes())
    resident.release()


@pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)
def test_a_full_disk_is_logged_and_the_key_is_loaded_all_the_same(
    tmp_path: Path, packed: PackedKeys, family: KeyFamily
) -> None:
    entry = add(tmp_path, BLS) if family is KeyFamily.SNARKJS else bellperson(tmp_path)
    circuit = offered(tmp_path, entry, packed)
    with small_disk(packed.folder, 8192), structlog.testing.capture_logs() as logs:
        resident = load(tmp_path, circuit, packed)
    warnings = [x for x in logs if x["event"] == "key.not_packed"]
    assert [x["log_level"] for x in warnings] == ["warning"]
    assert str(packed.path_of(circuit.source_sha256)) in warnings[0]["reason"]
    assert "No space left" in warnings[0]["reason"]
    assert resident.packed is None
    witness = read_wtns("w", (BLS / "witness.wtns").read_bytes())
    proof = prove(NativeBackend(), resident.key, witness)
    statement = witness.statement(entry.manifest.n_public)
    assert Verifier(entry.verifying_key()).verify(statement, proof.to_bytes())
    resident.release()


def test_a_bellperson_key_too_large_to_decode_in_memory_is_refused_with_the_sizes(
    tmp_path: Path, packed: PackedKeys
) -> None:
    circuit = offered(tmp_path, bellperson(tmp_path), packed)
    tight, files = PackedKeys(packed.folder, 1), CircuitFiles(tmp_path)
    limit = type(circuit.offer.key)(10_000)
    with pytest.raises(ResourceError, match="without a packed file the key takes") as caught:
        load_key(circuit, files, tight, NativeBackend(), limit, check_points=True)
    assert str(packed.path_of(circuit.source_sha256)) in str(caught.value)
    assert isinstance(caught.value.__context__, PackingError)
