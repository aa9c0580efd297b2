"""`prove` and `verify` without services: what snarkjs made and what we make, and their damage."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_circuits import EDGE, ONE, files_of

MERKLE = Path("examples/merkle")


async def verified(cli: Cli, vectors: Path, folder: Path) -> int:
    return (
        await cli(
            *("verify", "--vkey", vectors / "verification_key.json"),
            *("--public", folder / "public.json", "--proof", folder / "proof.json"),
        )
    ).code


@pytest.mark.parametrize(("curve", "given"), [("bn254", "witness"), ("bls12-381", "input")])
async def test_a_proof_of_the_merkle_example_verifies(
    cli: Cli, tmp_path: Path, curve: str, given: str
) -> None:
    folder = MERKLE / curve
    await cli("circuits", "add", "merkle", *files_of(folder))
    file = folder / ("input.json" if given == "input" else "witness.wtns")
    ended = await cli("prove", "merkle", f"--{given}", file, "--out", tmp_path / "o", "--json")
    assert ended.code == 0
    assert (ended.object["curve"], ended.object["verified"]) == (curve, True)
    assert await verified(cli, folder, tmp_path / "o") == 0
    public = json.loads((tmp_path / "o" / "public.json").read_text())
    assert public == json.loads((folder / "public.json").read_text())


async def test_the_reference_backend_proves_too(cli: Cli, tmp_path: Path) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    ended = await cli(
        *("prove", "one", "--input", ONE / "input.json", "--out", tmp_path),
        *("--backend", "reference"),
    )
    assert ended.code == 0
    assert await verified(cli, ONE, tmp_path) == 0


async def test_snarkjs_proofs_verify_and_a_changed_public_input_ends_with_one(
    cli: Cli, tmp_path: Path
) -> None:
    assert await verified(cli, ONE, ONE) == 0
    public = json.loads((ONE / "public.json").read_text())
    public[0] = str(int(public[0]) + 1)
    (tmp_path / "public.json").write_text(json.dumps(public))
    (tmp_path / "proof.json").write_bytes((ONE / "proof.json").read_bytes())
    assert await verified(cli, ONE, tmp_path) == 1


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("pi_a", ["1", "3", "1"], "pi_a"),
        ("pi_a", ["1", "2"], "pi_a"),
        ("curve", "bls12381", "curve"),
        ("protocol", "plonk", "protocol"),
        ("extra", 1, "extra"),
    ],
)
async def test_a_damaged_proof_names_its_field(
    cli: Cli, tmp_path: Path, field: str, value: object, named: str
) -> None:
    proof = json.loads((ONE / "proof.json").read_text())
    proof[field] = value
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(proof))
    ended = await cli(
        *("verify", "--vkey", ONE / "verification_key.json"),
        *("--public", ONE / "public.json", "--proof", path),
    )
    assert ended.code == 2
    assert named in ended.err


async def test_the_first_unsatisfied_row_is_named_and_nothing_is_written(
    cli: Cli, tmp_path: Path
) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    ended = await cli(
        *("prove", "one", "--witness", ONE / "unsatisfied.wtns", "--out", tmp_path / "o")
    )
    assert ended.code == 2
    assert "row 0 of 1" in ended.err
    assert list((tmp_path / "o").iterdir()) == []


async def test_without_r1cs_the_error_says_how_to_see_the_row(cli: Cli, tmp_path: Path) -> None:
    await cli("circuits", "add", "one", "--zkey", ONE / "circuit.zkey")
    ended = await cli(
        *("prove", "one", "--witness", ONE / "unsatisfied.wtns", "--out", tmp_path / "o")
    )
    assert ended.code == 2
    assert "add --r1cs to see where" in ended.err


async def test_an_input_of_another_shape_names_file_or_signal(cli: Cli, tmp_path: Path) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    path = tmp_path / "in.json"
    for text, named in (("{", "in.json"), ('{"nothing": 1}', "nothing"), ("[1]", "in.json")):
        path.write_text(text)
        ended = await cli("prove", "one", "--input", path, "--out", tmp_path / "o")
        assert ended.code == 2
        assert named in ended.err


async def test_a_witness_of_another_circuit_or_cut_off_is_named(cli: Cli, tmp_path: Path) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    cut = tmp_path / "cut.wtns"
    cut.write_bytes((ONE / "witness.wtns").read_bytes()[:-1])
    for path in (EDGE / "many-public-bn254" / "witness.wtns", cut):
        ended = await cli("prove", "one", "--witness", path, "--out", tmp_path / "o")
        assert ended.code == 2
        assert str(path) in ended.err
