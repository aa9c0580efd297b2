"""The Merkle example: its Python hash and tree agree with the papers' vectors and the circuit."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from examples.merkle.poseidon_constants import PRIMES, circom_source
from examples.merkle.tree import DEPTH, Tree, hash2, inputs, members, permute

ROOT = Path(__file__).resolve().parents[2]
MERKLE = ROOT / "examples" / "merkle"

# The permutation of (0, 1, 2) as the authors of Poseidon publish it for these two fields
# (test vectors poseidonperm_x5_254_3 and poseidonperm_x5_255_3 of their reference code).
PUBLISHED = {
    "bn254": [
        0x115CC0F5E7D690413DF64C6B9662E9CF2A3617F2743245519E19607A4417189A,
        0x0FCA49B798923AB0239DE1C9E7A4A9A2210312B6A2F616D18B5A87F9B628AE29,
        0x0E7AE82E40091E63CBD4F16A6D16310B3729D4B6E138FCF54110E2867045A30C,
    ],
    "bls12-381": [
        0x28CE19420FC246A05553AD1E8C98F5C9D67166BE2C18E9E4CB4B4E317DD2A78A,
        0x51F3E312C95343A896CFD8945EA82BA956C1118CE9B9859B6EA56637B4B1DDC4,
        0x3B2B69139B235626A0BFB56C9527AE66A7BF486AD8C11C14D1DA0C69BBE0F79A,
    ],
}

both_curves = pytest.mark.parametrize("curve", sorted(PRIMES))


def read_json(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def witness_by_name(curve: str) -> dict[str, int]:
    """The committed witness by signal name; names of signals that circom removed are absent."""
    data = (MERKLE / curve / "witness.wtns").read_bytes()
    (field_bytes,) = struct.unpack_from("<I", data, 24)
    start = 24 + 4 + field_bytes + 4 + 12
    named = {}
    for line in (MERKLE / curve / "circuit.sym").read_text().splitlines():
        _, wire, _, name = line.split(",")
        at = start + int(wire) * field_bytes
        if int(wire) >= 0:
            named[name] = int.from_bytes(data[at : at + field_bytes], "little")
    return named


@both_curves
def test_the_permutation_gives_the_published_vector(curve: str) -> None:
    assert permute(curve, [0, 1, 2]) == PUBLISHED[curve]


@both_curves
def test_the_committed_constants_are_those_of_the_grain_generator(curve: str) -> None:
    committed = MERKLE / f"poseidon_{curve.replace('-', '')}.circom"
    assert committed.read_text(encoding="utf-8") == circom_source(curve)


@both_curves
def test_the_committed_input_is_the_first_of_the_default_ten(curve: str) -> None:
    assert read_json(MERKLE / curve / "input.json") == inputs(curve, 10)[0]


@both_curves
def test_the_circuit_states_the_nullifier_root_and_scope_that_python_computes(curve: str) -> None:
    first = members(curve, 10, "partita")[0]
    given = inputs(curve, 10)[0]
    nullifier = str(hash2(curve, first.secret, 1))
    assert read_json(MERKLE / curve / "public.json") == [nullifier, given["root"], "1"]


@both_curves
def test_every_node_of_the_circuits_witness_is_the_node_of_the_python_tree(curve: str) -> None:
    witness = witness_by_name(curve)
    first = members(curve, 10, "partita")[0]
    siblings = [int(value) for value in inputs(curve, 10)[0]["siblings"]]
    node = hash2(curve, first.secret, first.salt)
    assert witness["main.leaf.out"] == node
    # circom keeps one name of two equal signals: the last node is the root.
    names = [f"main.node[{height}].out" for height in range(DEPTH - 1)] + ["main.root"]
    for height, (name, sibling) in enumerate(zip(names, siblings, strict=True)):
        pair = (sibling, node) if first.position >> height & 1 else (node, sibling)
        node = hash2(curve, *pair)
        assert witness[name] == node


def test_ten_members_have_ten_different_inputs_under_one_root() -> None:
    made = inputs("bn254", 10)
    assert len({str(value["secret"]) for value in made}) == 10
    assert len({tuple(value["path"]) for value in made}) == 10
    assert len({str(value["root"]) for value in made}) == 1


def test_a_sparse_tree_has_the_root_of_the_full_tree() -> None:
    def root_of(level: list[int]) -> int:
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [hash2("bn254", left, right) for left, right in pairs]
        return level[0]

    tree = Tree("bn254", {1: 7, 4: 9}, depth=3)
    assert tree.root == root_of([0, 7, 0, 0, 9, 0, 0, 0])
    assert tree.siblings(4)[0] == 0
    assert tree.siblings(4)[2] == root_of([0, 7, 0, 0])


def test_the_program_writes_the_same_ordered_files_each_time(tmp_path: Path) -> None:
    for name in ("first", "second"):
        command = [sys.executable, str(MERKLE / "tree.py"), "--curve", "bls12-381"]
        subprocess.run([*command, "--count", "3", "--out", str(tmp_path / name)], check=True)
    first, second = (sorted((tmp_path / name).iterdir()) for name in ("first", "second"))
    assert [path.name for path in first] == ["input-00.json", "input-01.json", "input-02.json"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    value = read_json(first[2])
    assert isinstance(value, dict)
    assert len(value["siblings"]) == len(value["path"]) == DEPTH


def test_the_program_refuses_a_scope_outside_the_field(tmp_path: Path) -> None:
    command = [sys.executable, str(MERKLE / "tree.py"), "--curve", "bn254", "--out", str(tmp_path)]
    scope = str(PRIMES["bn254"])
    done = subprocess.run([*command, "--scope", scope], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert scope in done.stderr
    assert not list(tmp_path.iterdir())
