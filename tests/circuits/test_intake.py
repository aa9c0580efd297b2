"""Taking circuits in: what belongs together is added, what does not is refused before it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue
from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.errors import CircuitExistsError, ProgramError
from partita.circuits.intake import CircuitSources, add_circuit, set_up_circuit
from partita.circuits.key_source import source_sha256
from partita.circuits.packed import PackedKeys
from partita.circuits.snarkjs_json import read_verifying_key_json
from partita.circuits.synthesis import open_synthesizer
from partita.circuits.wtns import write_wtns
from partita.groth16.curves import curve_named
from partita.groth16.errors import EncodingError, FormatError, InputError, MismatchError
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.reference import ReferenceBackend
from tests.circuits.circuit_vectors import (
    ALL,
    HOSTILE,
    CircuitVector,
    ShapeBackend,
    edge,
    sections_of,
    with_sections,
)

ONE = edge("one-constraint")


def sources(vector: CircuitVector, **replaced: Path | None) -> CircuitSources:
    files: dict[str, Path | None] = {
        role: vector.path / f"circuit.{role}" for role in ("zkey", "wasm", "r1cs", "sym")
    }
    files.update(replaced)
    key = files.pop("zkey")
    assert key is not None
    return CircuitSources(key, **files)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path / "circuits")


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_circuit_is_added_and_makes_witnesses(
    vector: CircuitVector, catalogue: Catalogue
) -> None:
    entry = add_circuit(catalogue, "it", sources(vector), ShapeBackend())
    manifest = entry.manifest
    assert manifest.curve == vector.facts["curve"]
    assert manifest.n_constraints == vector.facts["constraints"]
    assert manifest.n_public == vector.facts["n_public"]
    assert manifest.domain_size == vector.facts["domain_size"]
    assert set(manifest.files) == {"zkey", "vk", "wasm", "r1cs", "sym"}
    assert set(manifest.input_formats) == {"wtns", "circom.json"}
    text = vector.text("verification_key.json")
    assert entry.verifying_key() == read_verifying_key_json("vk", text, check_subgroups=False)
    assert catalogue.verify() == []

    files = CircuitFiles(catalogue.root)
    for input_format, name in (("circom.json", "input.json"), ("wtns", "witness.wtns")):
        data = vector.read(name)
        assert len(data) <= manifest.input_formats[input_format]
        witness = open_synthesizer(manifest, input_format, files).synthesize(data)
        assert write_wtns(witness) == vector.read("witness.wtns")


def test_a_circuit_without_a_program_takes_witnesses_only(catalogue: Catalogue) -> None:
    only_key = sources(ONE, wasm=None, r1cs=None, sym=None)
    entry = add_circuit(catalogue, "it", only_key, ShapeBackend())
    assert set(entry.manifest.files) == {"zkey", "vk"}
    assert entry.manifest.input_formats == {"wtns": len(ONE.read("witness.wtns"))}
    assert entry.manifest.limits is None
    assert entry.manifest.n_constraints == 1


def test_the_same_circuit_again_changes_nothing_and_another_is_refused(
    catalogue: Catalogue,
) -> None:
    first = add_circuit(catalogue, "it", sources(ONE), ShapeBackend())
    assert add_circuit(catalogue, "it", sources(ONE), ShapeBackend()) == first
    with pytest.raises(CircuitExistsError):
        add_circuit(catalogue, "it", sources(ONE, sym=None), ShapeBackend())


OTHER = edge("shapes")
OTHER_CURVE = edge("one-constraint", "bls12-381")


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"wasm": OTHER.path / "circuit.wasm"}, "number of wires differs: expected 4, found 28"),
        ({"r1cs": OTHER.path / "circuit.r1cs"}, "number of wires differs: expected 4, found 28"),
        ({"sym": OTHER.path / "circuit.sym"}, "number of wires differs: expected 4, found 28"),
        ({"zkey": OTHER.path / "circuit.zkey"}, "number of wires differs: expected 28, found 4"),
        ({"wasm": OTHER_CURVE.path / "circuit.wasm"}, "curve differs: expected bn254, found bls"),
        ({"r1cs": OTHER_CURVE.path / "circuit.r1cs"}, "curve differs: expected bn254, found bls"),
        ({"zkey": OTHER_CURVE.path / "circuit.zkey"}, "curve differs: expected bls12-381, found"),
        (
            {"r1cs": edge("no-public").path / "circuit.r1cs"},
            "number of public inputs differs: expected 1, found 0",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    catalogue: Catalogue, replaced: dict[str, Path], message: str
) -> None:
    with pytest.raises(MismatchError, match=message):
        add_circuit(catalogue, "it", sources(ONE, **replaced), ShapeBackend())
    assert list(catalogue.root.iterdir()) == []


def test_a_file_of_the_wrong_kind_is_refused_by_its_own_name(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("not a circuit")
    cases: list[tuple[dict[str, Path], type[InputError]]] = [
        ({"zkey": text}, FormatError),
        ({"zkey": HOSTILE / "plonk.zkey"}, FormatError),
        ({"zkey": HOSTILE / "fflonk.zkey"}, FormatError),
        ({"r1cs": text}, FormatError),
        ({"sym": text}, FormatError),
        ({"wasm": text}, ProgramError),
        ({"wasm": HOSTILE / "circom1.wasm"}, ProgramError),
    ]
    for replaced, error in cases:
        (path,) = replaced.values()
        with pytest.raises(error, match=path.name):
            add_circuit(catalogue, "it", sources(ONE, **replaced), ShapeBackend())
    with pytest.raises(FileNotFoundError):
        add_circuit(catalogue, "it", sources(ONE, sym=tmp_path / "absent"), ShapeBackend())
    assert list(catalogue.root.iterdir()) == []


@pytest.mark.parametrize("section", [5, 6, 7, 8, 9])
def test_every_point_of_the_key_is_checked(
    catalogue: Catalogue, tmp_path: Path, section: int
) -> None:
    key = ONE.read("circuit.zkey")
    body = bytearray(sections_of(key)[section])
    body[-128 if section == 7 else -64 :] = b"\x01" + bytes(127 if section == 7 else 63)
    bad = tmp_path / "bad.zkey"
    bad.write_bytes(with_sections(key, {section: bytes(body)}))
    with pytest.raises(EncodingError, match="off the curve"):
        add_circuit(catalogue, "it", sources(ONE, zkey=bad), ReferenceBackend())
    assert list(catalogue.root.iterdir()) == []


def test_a_point_of_the_key_outside_the_subgroup_is_refused(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    group = curve_named("bls12-381").g1
    f = group.field
    x = next(
        x
        for x in range(1, 100)
        if (y := f.sqrt(group.right_side(x))) is not None and not group.is_in_subgroup((x, y))
    )
    y = f.sqrt(group.right_side(x))
    assert y is not None
    key = OTHER_CURVE.read("circuit.zkey")
    body = sections_of(key)[5]
    bad = tmp_path / "bad.zkey"
    bad.write_bytes(with_sections(key, {5: body[:-96] + group.to_device((x, y))}))
    with pytest.raises(EncodingError, match="subgroup"):
        add_circuit(catalogue, "it", sources(OTHER_CURVE, zkey=bad), ReferenceBackend())


def test_adding_packs_the_key_under_its_digest(catalogue: Catalogue, tmp_path: Path) -> None:
    packed = PackedKeys(tmp_path / "packed")
    seen: list[tuple[int, int]] = []
    entry = add_circuit(
        catalogue, "it", sources(ONE), ShapeBackend(), packed, lambda *step: seen.append(step)
    )
    header = packed.find(entry.manifest.files["zkey"])
    assert header is not None
    assert header.n_wires == entry.manifest.n_wires
    assert seen[-1] == (header.size_bytes, header.size_bytes)


def test_packing_checks_every_point_and_adds_nothing_if_one_fails(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    zkey = ONE.read("circuit.zkey")
    points = sections_of(zkey)[7]
    at = zkey.index(points) + next(i for i, byte in enumerate(points) if byte)
    (tmp_path / "bad.zkey").write_bytes(zkey[:at] + bytes([zkey[at] ^ 1]) + zkey[at + 1 :])
    packed = PackedKeys(tmp_path / "packed")
    with pytest.raises(EncodingError, match=r"bad\.zkey, query b2\[\d+\]: off the curve"):
        add_circuit(
            catalogue, "it", sources(ONE, zkey=tmp_path / "bad.zkey"), ShapeBackend(), packed
        )
    assert catalogue.scan().circuits == {}
    assert list(packed.folder.glob("*.pk")) == []


def test_without_room_for_a_packed_key_the_backend_checks_the_points(
    catalogue: Catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = add_circuit(
        catalogue, "it", sources(ONE), NativeBackend(), PackedKeys(tmp_path / "packed", 1)
    )
    assert entry.circuit_id == "it"
    assert "the key is not packed" in caplog.text
    zkey = ONE.read("circuit.zkey")
    at = zkey.index(sections_of(zkey)[5])
    (tmp_path / "bad.zkey").write_bytes(zkey[:at] + bytes([zkey[at] ^ 1]) + zkey[at + 1 :])
    with pytest.raises(EncodingError, match="off the curve"):
        add_circuit(
            catalogue,
            "other",
            sources(ONE, zkey=tmp_path / "bad.zkey"),
            NativeBackend(),
            PackedKeys(tmp_path / "packed", 1),
        )


@pytest.mark.parametrize("family", KeyFamily, ids=lambda family: family.value)
def test_a_set_up_packs_the_same_file_as_adding_its_key_elsewhere(
    catalogue: Catalogue, tmp_path: Path, family: KeyFamily
) -> None:
    """The points that were computed here go into the packed key unchecked, and are the file's."""
    here, there = PackedKeys(tmp_path / "here"), PackedKeys(tmp_path / "there")
    r1cs = CircuitSources(r1cs=OTHER_CURVE.path / "circuit.r1cs")
    entry = set_up_circuit(catalogue, "it", r1cs, family, packed_keys=here)
    assert entry.manifest.insecure
    source = source_sha256(entry.manifest.files)
    assert here.path_of(source).exists()

    role = "zkey" if family is KeyFamily.SNARKJS else "params"
    again = CircuitSources(r1cs=entry.file("r1cs"), **{role: entry.file(role)})
    added = add_circuit(catalogue, "again", again, NativeBackend(), there)
    assert added.manifest.files == entry.manifest.files
    assert there.path_of(source).read_bytes() == here.path_of(source).read_bytes()


def test_a_set_up_takes_constraints_and_no_key(catalogue: Catalogue) -> None:
    with pytest.raises(InputError, match="makes the key"):
        set_up_circuit(catalogue, "it", sources(ONE), KeyFamily.SNARKJS)
    with pytest.raises(InputError, match=r"needs the \.r1cs"):
        set_up_circuit(catalogue, "it", CircuitSources(), KeyFamily.SNARKJS)
    with pytest.raises(InputError, match="has no key"):
        add_circuit(catalogue, "it", CircuitSources(), ShapeBackend())
    key = ONE.path / "circuit.zkey"
    with pytest.raises(InputError, match="has one key"):
        CircuitSources(zkey=key, params=key)
    assert list(catalogue.root.iterdir()) == []
