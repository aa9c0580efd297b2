"""The vectors are complete and are the edge cases that their README promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
MANIFEST: dict[str, dict[str, Any]] = json.loads((VECTORS / "vectors.json").read_text())
FILES = {
    "circuit.r1cs",
    "circuit.wasm",
    "circuit.sym",
    "circuit.zkey",
    "verification_key.json",
    "input.json",
    "witness.wtns",
    "proof.json",
    "public.json",
}

both_curves = pytest.mark.parametrize("curve", ["bn254", "bls12-381"])


def edge(name: str, curve: str) -> dict[str, Any]:
    return MANIFEST[f"tests/vectors/edge/{name}-{curve}"]


def rows(entry: dict[str, Any]) -> int:
    return int(entry["constraints"] + entry["n_public"] + 1)


def test_the_manifest_lists_every_folder_and_each_folder_is_complete() -> None:
    edges = {path.parent for path in (VECTORS / "edge").glob("*/circuit.zkey")}
    examples = {path.parent for path in (ROOT / "examples").glob("*/*/circuit.zkey")}
    assert {path.relative_to(ROOT).as_posix() for path in edges | examples} == set(MANIFEST)
    for folder in edges | examples:
        assert FILES - {path.name for path in folder.iterdir()} == set(), folder


def test_every_edge_is_there_on_both_curves() -> None:
    names = {path.stem for path in (VECTORS / "edge" / "sources").glob("*.circom")} - {"chain"}
    expected = {f"{name}-{curve}" for name in names for curve in ("bn254", "bls12-381")}
    assert {Path(folder).name for folder in MANIFEST if "/edge/" in folder} == expected


def test_the_vectors_stay_small_enough_to_clone() -> None:
    places = (VECTORS, ROOT / "examples")
    total = sum(
        path.stat().st_size for place in places for path in place.rglob("*.*") if path.is_file()
    )
    assert total < 25_000_000


@pytest.mark.parametrize("folder", sorted(MANIFEST))
def test_the_statement_is_as_long_as_the_key_says(folder: str) -> None:
    public = json.loads((ROOT / folder / "public.json").read_text())
    key = json.loads((ROOT / folder / "verification_key.json").read_text())
    entry = MANIFEST[folder]
    assert len(public) == entry["n_public"] == key["nPublic"] == len(key["IC"]) - 1
    assert entry["n_public"] == entry["public_outputs"] + entry["public_inputs"]


@both_curves
def test_the_counts_are_the_edges_that_the_names_say(curve: str) -> None:
    assert edge("one-constraint", curve)["constraints"] == 1
    assert edge("no-public", curve)["n_public"] == 0
    assert edge("no-public", curve)["wires"] == edge("one-constraint", curve)["wires"]
    assert edge("many-public", curve)["public_inputs"] == 300
    even, odd = edge("power-of-two", curve), edge("power-of-two-and-one", curve)
    assert rows(even) == even["domain_size"] == 64
    assert rows(odd) == 65
    assert odd["domain_size"] == 128


@both_curves
def test_linear_and_empty_rows_leave_infinities_in_the_key(curve: str) -> None:
    linear = edge("linear-only", curve)
    assert linear["infinity_points"]["B1"] == linear["infinity_points"]["B2"] == linear["wires"]
    sparse = edge("empty-rows", curve)["infinity_points"]
    assert min(sparse.values()) > 0


@both_curves
def test_an_unsatisfied_witness_breaks_the_row_that_the_manifest_names(curve: str) -> None:
    assert edge("one-constraint", curve)["unsatisfied_first_bad_row"] == 0
    assert edge("power-of-two", curve)["unsatisfied_first_bad_row"] > 0
