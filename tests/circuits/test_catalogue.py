"""The catalogue: entries appear in full or not at all, and damage to one stays with it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue, Entry, Fault
from partita.circuits.container import write_container
from partita.circuits.development import DEVELOPMENT_MARK
from partita.circuits.errors import (
    BrokenCircuitError,
    CatalogueError,
    CircuitExistsError,
    UnknownCircuitError,
)
from partita.circuits.manifest import Manifest
from partita.circuits.snarkjs_json import read_verifying_key_json
from partita.groth16.keys import KeyFamily
from tests.circuits.circuit_vectors import edge

VK = read_verifying_key_json("vk", edge("one-constraint").text("verification_key.json"))


def zkey_of(content: bytes, mark: bytes = bytes(64)) -> bytes:
    """A file that the catalogue takes for a key: it reads no more of one than its mark."""
    return write_container(magic=b"zkey", version=1, sections=[(10, mark + content)])


def manifest_of(files: Mapping[str, str]) -> Manifest:
    return Manifest(
        curve="bn254",
        family=KeyFamily.SNARKJS,
        n_public=1,
        n_wires=4,
        n_constraints=1,
        domain_size=4,
        input_formats={"wtns": 204},
        limits=None,
        files=files,
    )


def add(catalogue: Catalogue, name: str, content: bytes = b"key") -> Entry:
    with catalogue.stage(name) as staging:
        staging.write("zkey", zkey_of(content))
        staging.write("vk", VK.to_bytes())
        return staging.publish(manifest_of(staging.files))


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path / "circuits")


def leftovers(catalogue: Catalogue) -> list[str]:
    return [path.name for path in catalogue.root.iterdir() if path.name.startswith(".new-")]


def test_an_entry_is_found_with_its_files_and_digests(catalogue: Catalogue) -> None:
    added = add(catalogue, "a.circuit-1")
    found = Catalogue(catalogue.root).show("a.circuit-1")
    assert found == added
    assert found.file("zkey").read_bytes() == zkey_of(b"key")
    assert found.verifying_key() == VK
    assert found.manifest_sha256 == found.manifest.sha256()
    assert found.manifest.files["zkey"] == hashlib.sha256(zkey_of(b"key")).hexdigest()
    with pytest.raises(KeyError):
        found.file("wasm")
    assert leftovers(catalogue) == []


def test_the_revision_is_the_digest_of_sorted_names_and_manifests(catalogue: Catalogue) -> None:
    empty = catalogue.scan()
    assert empty.revision == hashlib.sha256(b"").digest()
    b, a = add(catalogue, "b"), add(catalogue, "a", b"other")
    expected = b"a\0" + a.manifest_sha256 + b"b\0" + b.manifest_sha256
    assert catalogue.scan().revision == hashlib.sha256(expected).digest()
    catalogue.remove("a")
    catalogue.remove("b")
    assert catalogue.scan().revision == empty.revision


def test_a_scan_sees_changes_and_only_changes(catalogue: Catalogue) -> None:
    add(catalogue, "a")
    first = catalogue.scan()
    assert catalogue.scan() is first
    add(Catalogue(catalogue.root), "b")
    second = catalogue.scan()
    assert set(second.circuits) == {"a", "b"}
    assert second.circuits["a"] is first.circuits["a"]


@pytest.mark.parametrize(
    "name", ["", "A", "a/b", "../a", ".a", "-a", "a b", "a" * 65, "é", "a\n", ".files"]
)
def test_what_is_no_name_is_refused(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(CatalogueError, match="is no name for a circuit"):
        add(catalogue, name)
    with pytest.raises(UnknownCircuitError):
        catalogue.show(name)
    with pytest.raises(UnknownCircuitError):
        catalogue.remove(name)


def test_the_same_files_again_change_nothing(catalogue: Catalogue) -> None:
    first = add(catalogue, "a")
    state = catalogue.scan()
    assert add(catalogue, "a") == first
    assert catalogue.scan() is state
    assert leftovers(catalogue) == []


def test_a_name_is_bound_until_it_is_removed(catalogue: Catalogue) -> None:
    first = add(catalogue, "a")
    with pytest.raises(CircuitExistsError) as caught:
        add(catalogue, "a", b"other")
    assert caught.value.bound_sha256 == first.manifest_sha256.hex()
    assert catalogue.show("a") == first
    assert leftovers(catalogue) == []
    catalogue.remove("a")
    assert add(catalogue, "a", b"other").manifest_sha256 != first.manifest_sha256


def test_racing_additions_of_one_circuit_make_one_entry(catalogue: Catalogue) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: add(Catalogue(catalogue.root), "a"), range(16)))
    assert len({entry.manifest_sha256 for entry in found}) == 1
    assert catalogue.verify() == []
    assert leftovers(catalogue) == []


def test_racing_additions_under_one_name_bind_it_once(catalogue: Catalogue) -> None:
    def attempt(n: int) -> str:
        try:
            return add(Catalogue(catalogue.root), "a", bytes([n])).manifest_sha256.hex()
        except CircuitExistsError as error:
            return error.bound_sha256

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(attempt, range(16)))) == 1


def test_an_addition_that_is_not_published_leaves_nothing(catalogue: Catalogue) -> None:
    with catalogue.stage("a") as staging:
        staging.write("zkey", b"key")
    assert list(catalogue.root.iterdir()) == []
    with catalogue.stage("a") as staging:
        staging.write("zkey", b"key")
        with pytest.raises(CatalogueError, match="names other files"):
            staging.publish(manifest_of({**staging.files, "vk": "0" * 64}))
    assert catalogue.scan().circuits == {}


def test_what_an_interrupted_addition_left_is_swept_after_a_day(catalogue: Catalogue) -> None:
    old, new = catalogue.root / ".new-old", catalogue.root / ".new-fresh"
    for path in (old, new):
        (path / "a").mkdir(parents=True)
    os.utime(old, (0, 0))
    add(catalogue, "a")
    assert not old.exists()
    assert new.exists()
    assert set(catalogue.scan().circuits) == {"a"}
    assert catalogue.scan().broken == {}


def test_a_broken_entry_is_reported_and_the_others_stay(catalogue: Catalogue) -> None:
    for name in ("good", "cut", "gone", "lost"):
        add(catalogue, name)
    catalogue.scan()
    manifest = catalogue.root / "cut" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    (catalogue.root / "gone" / "manifest.json").unlink()
    (catalogue.root / "lost" / "zkey").unlink()
    (catalogue.root / "Bad Name").mkdir()
    (catalogue.root / "README").write_text("not a folder")
    state = catalogue.scan()
    assert set(state.circuits) == {"good"}
    assert "is not JSON" in state.broken["cut"]
    assert "cannot be read: No such file" in state.broken["gone"]
    assert state.broken["lost"] == "missing files: zkey"
    assert "no name" in state.broken["Bad Name"]
    for name in ("cut", "gone", "lost"):
        with pytest.raises(BrokenCircuitError, match=f"circuit '{name}'"):
            catalogue.show(name)


def test_an_altered_file_is_named_with_both_digests(catalogue: Catalogue) -> None:
    entry = add(catalogue, "a")
    add(catalogue, "b")
    assert catalogue.verify() == []
    entry.file("zkey").write_bytes(b"kez")
    found = hashlib.sha256(b"kez").hexdigest()
    digest = entry.manifest.files["zkey"]
    expected = [Fault("a", f"zkey was altered: expected {digest}, found {found}")]
    assert catalogue.verify() == catalogue.verify("a") == expected
    assert catalogue.verify("b") == []
    with pytest.raises(UnknownCircuitError):
        catalogue.verify("c")


def test_an_altered_verifying_key_is_not_used(catalogue: Catalogue) -> None:
    entry = add(catalogue, "a")
    entry.file("vk").write_bytes(VK.to_bytes()[:-1] + b"\0")
    with pytest.raises(BrokenCircuitError, match="vk was altered"):
        entry.verifying_key()
    entry.file("vk").unlink()
    with pytest.raises(BrokenCircuitError, match="vk cannot be read"):
        entry.verifying_key()


def test_a_verifying_key_that_does_not_fit_its_manifest_is_not_used(catalogue: Catalogue) -> None:
    """A manifest from afar may name any file: its digest is right, and yet it is no key."""
    for name, data, message in (
        ("none", b"no key", "vk is none"),
        ("other", dataclasses.replace(VK, ic=VK.ic[:1]).to_bytes(), "vk is of 0 public inputs"),
    ):
        with catalogue.stage(name) as staging:
            staging.write("zkey", b"key")
            staging.write("vk", data)
            entry = staging.publish(manifest_of(staging.files))
        with pytest.raises(BrokenCircuitError, match=message):
            entry.verifying_key()


def edited(entry: Entry, **changed: object) -> None:
    """Edit an entry's manifest by hand, so well that it is canonical."""
    text = dataclasses.replace(entry.manifest, **changed).to_json()  # type: ignore[arg-type]
    (entry.path / "manifest.json").write_bytes(text)


def test_a_manifest_that_was_edited_and_contradicts_its_verifying_key_is_found(
    catalogue: Catalogue,
) -> None:
    add(catalogue, "b")
    edited(add(catalogue, "a"), n_public=2)
    expected = [Fault("a", "vk is of 1 public inputs, not of 2")]
    assert catalogue.verify() == catalogue.verify("a") == expected


@pytest.mark.parametrize(
    ("mark", "insecure", "what"),
    [
        (DEVELOPMENT_MARK, False, "does not say insecure, but zkey is of a development set-up"),
        (bytes(64), True, "says insecure, but zkey is of no development set-up"),
    ],
)
def test_a_manifest_and_a_key_that_disagree_on_a_development_set_up_are_found(
    catalogue: Catalogue, mark: bytes, insecure: bool, what: str
) -> None:
    with catalogue.stage("a") as staging:
        staging.write("zkey", zkey_of(b"key", mark))
        staging.write("vk", VK.to_bytes())
        right = dataclasses.replace(manifest_of(staging.files), insecure=not insecure)
        entry = staging.publish(right)
    assert catalogue.verify() == []
    edited(entry, insecure=insecure)
    assert catalogue.verify("a") == [Fault("a", f"manifest.json {what}")]
    with pytest.raises(BrokenCircuitError, match=what):
        catalogue.show("a").check_mark()


def test_a_key_file_whose_mark_cannot_be_read_is_broken(catalogue: Catalogue) -> None:
    entry = add(catalogue, "a")
    entry.file("zkey").write_bytes(b"kez")
    with pytest.raises(BrokenCircuitError, match="zkey: has only 3 bytes"):
        entry.check_mark()
    entry.file("zkey").unlink()
    with pytest.raises(BrokenCircuitError, match="zkey cannot be read: No such file"):
        entry.check_mark()


def test_adding_a_damaged_circuit_again_repairs_it(catalogue: Catalogue) -> None:
    entry = add(catalogue, "a")
    entry.file("zkey").write_bytes(b"kez")
    assert add(catalogue, "a") == entry
    assert catalogue.verify() == []
    entry.file("zkey").unlink()
    assert add(catalogue, "a") == entry
    assert catalogue.verify() == []


def test_a_broken_entry_can_be_removed(catalogue: Catalogue) -> None:
    (add(catalogue, "a").path / "manifest.json").unlink()
    catalogue.remove("a")
    assert catalogue.scan().broken == {}
    assert leftovers(catalogue) == []
