"""Packed keys and bellperson's verifying keys by command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partita.circuits.bellperson import read_vk
from partita.circuits.packed import PackedKeys

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

EDGE = Path("tests/vectors/edge")
ONE = EDGE / "one-constraint-bn254"
ONE_BLS = EDGE / "one-constraint-bls12-381"


def packed_files(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "packed").glob("*.pk"))


async def test_adding_a_circuit_packs_its_key_and_prove_uses_it(
    cli: Cli, data_dir: Path, tmp_path: Path
) -> None:
    added = await cli("circuits", "add", "one", "--zkey", ONE / "circuit.zkey", "--json")
    (packed,) = packed_files(data_dir)
    assert packed.name.startswith(added.object["files"]["zkey"])
    (data_dir / "circuits" / "one" / "zkey").write_bytes(b"altered")
    proved = await cli(
        *("prove", "one", "--witness", ONE / "witness.wtns", "--out", tmp_path / "out", "--json")
    )
    assert (proved.code, proved.object["verified"]) == (0, True)


@pytest.mark.parametrize("family", ["snarkjs", "bellperson"])
async def test_setting_a_circuit_up_packs_its_key(cli: Cli, data_dir: Path, family: str) -> None:
    files = ("--r1cs", ONE_BLS / "circuit.r1cs")
    made = await cli("circuits", "setup", "one", *files, "--insecure", "--family", family)
    assert made.code == 0
    assert len(packed_files(data_dir)) == 1


async def test_removing_a_circuit_removes_its_packed_key_once_nothing_needs_it(
    cli: Cli, data_dir: Path
) -> None:
    for name in ("one", "same"):
        added = await cli("circuits", "add", name, "--zkey", ONE / "circuit.zkey", "--json")
    (packed,) = packed_files(data_dir)
    await cli("circuits", "remove", "one")
    assert packed_files(data_dir) == [packed], "another circuit has the same key"
    used = PackedKeys(data_dir / "packed").open(added.object["files"]["zkey"])
    assert used is not None
    assert (await cli("circuits", "remove", "same")).code == 0
    assert packed_files(data_dir) == [packed], "a prover uses it"
    used.close()
    await cli("circuits", "add", "same", "--zkey", ONE / "circuit.zkey")
    await cli("circuits", "remove", "same")
    assert packed_files(data_dir) == []


async def test_the_file_of_the_programs_says_where_circuits_lie_and_what_packed_keys_may_take(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PARTITA_DATA_DIR")
    config, lies = tmp_path / "partita.toml", tmp_path / "configured"
    config.write_text(f'[scheduler]\ndata_dir = "{lies}"\n[prover]\npacked_quota = "1KiB"\n')
    with_file = ("--config", config)
    assert (
        await cli("circuits", "add", "one", "--zkey", ONE / "circuit.zkey", *with_file)
    ).code == 0
    assert "all packed keys may take 1024" in caplog.text
    assert (lies / "circuits" / "one").is_dir()
    assert packed_files(lies) == []
    listed = await cli("circuits", "list", *with_file, "--json")
    assert [circuit["circuit_id"] for circuit in listed.object["circuits"]] == ["one"]
    config.write_text(f'[scheduler]\ndata_dir = "{lies}"\n')
    out = ("--witness", ONE / "witness.wtns", "--out", tmp_path / "out")
    assert (await cli("prove", "one", *out, *with_file)).code == 0
    assert len(packed_files(lies)) == 1
    config.write_text('[prover]\npacked_quota = "1K"\n')
    wrong = await cli("circuits", "remove", "one", "--data-dir", lies, *with_file)
    assert wrong.code == 2
    assert "packed_quota" in wrong.err
    assert (lies / "circuits" / "one").is_dir()
    missing = ("--data-dir", lies, "--config", tmp_path / "missing.toml")
    assert (await cli("circuits", "list", *missing)).code == 2


async def test_a_circuit_is_added_and_proved_without_room_for_its_packed_key(
    cli: Cli,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PARTITA_PROVER__PACKED_QUOTA", "1KiB")
    added = await cli("circuits", "add", "one", "--zkey", ONE / "circuit.zkey")
    assert added.code == 0
    assert "all packed keys may take 1024" in caplog.text
    assert packed_files(data_dir) == []
    proved = await cli(
        *("prove", "one", "--witness", ONE / "witness.wtns", "--out", tmp_path / "out")
    )
    assert proved.code == 0
    assert "read from the circuit's own files" in proved.err


async def test_a_bellperson_circuit_proves_and_its_vk_verifies(
    cli: Cli, data_dir: Path, tmp_path: Path
) -> None:
    r1cs = ("--r1cs", ONE_BLS / "circuit.r1cs")
    await cli("circuits", "setup", "made", *r1cs, "--insecure", "--family", "bellperson")
    params = data_dir / "circuits" / "made" / "params"
    assert (await cli("circuits", "add", "one", "--params", params, *r1cs)).code == 0
    assert len(packed_files(data_dir)) == 1
    out, vk = tmp_path / "out", tmp_path / "one.vk"
    witness = ("--witness", ONE_BLS / "witness.wtns")
    assert (await cli("prove", "one", *witness, "--out", out)).code == 0
    assert (await cli("circuits", "show", "one", "--vkey", vk)).code == 0
    assert params.read_bytes().startswith(vk.read_bytes())
    assert read_vk("vk", vk.read_bytes()).n_public == 1
    checked = ("verify", "--public", out / "public.json", "--proof", out / "proof.json")
    assert (await cli(*checked, "--vkey", vk)).code == 0
    vk.write_bytes(vk.read_bytes()[:-1])
    cut = await cli(*checked, "--vkey", vk)
    assert (cut.code, "cut off" in cut.err) == (2, True)


async def test_a_key_of_snarkjs_cannot_be_written_as_a_vk(cli: Cli, tmp_path: Path) -> None:
    await cli("circuits", "add", "one", "--zkey", ONE_BLS / "circuit.zkey")
    ended = await cli("circuits", "show", "one", "--vkey", tmp_path / "one.vk")
    assert ended.code == 2
    assert "write a .json" in ended.err


async def test_a_damaged_packed_key_is_made_again(
    cli: Cli, data_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await cli("circuits", "add", "one", "--zkey", ONE / "circuit.zkey")
    (packed,) = packed_files(data_dir)
    good = packed.read_bytes()
    packed.write_bytes(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    witness = ("--witness", ONE / "witness.wtns")
    proved = await cli("prove", "one", *witness, "--out", tmp_path / "out")
    assert proved.code == 0
    assert "damaged" in caplog.text
    assert packed.read_bytes() == good
