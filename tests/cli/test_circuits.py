"""The catalogue by command line, with real circuits and damaged files."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

EDGE = Path("tests/vectors/edge")
ONE = EDGE / "one-constraint-bn254"
HOSTILE = Path("tests/vectors/hostile")


def files_of(folder: Path) -> list[object]:
    return [
        *("--zkey", folder / "circuit.zkey"),
        *("--wasm", folder / "circuit.wasm"),
        *("--r1cs", folder / "circuit.r1cs"),
        *("--sym", folder / "circuit.sym"),
    ]


async def test_a_circuit_is_added_listed_shown_and_removed(cli: Cli, tmp_path: Path) -> None:
    added = await cli("circuits", "add", "one", *files_of(ONE), "--json")
    assert (added.code, added.object["circuit_id"]) == (0, "one")
    listed = await cli("circuits", "list", "--json")
    assert listed.object == {"circuits": [added.object], "broken": {}}
    assert "one" in (await cli("circuits", "list")).out

    vkey = tmp_path / "vk.json"
    shown = await cli("circuits", "show", "one", "--vkey", vkey)
    assert added.object["manifest_sha256"] in shown.out
    assert vkey.read_text() == (ONE / "verification_key.json").read_text()

    assert (await cli("circuits", "verify")).code == 0
    assert (await cli("circuits", "remove", "one")).code == 0
    assert (await cli("circuits", "list", "--json")).object["circuits"] == []


async def test_the_same_files_again_change_nothing_and_others_are_refused(cli: Cli) -> None:
    first = await cli("circuits", "add", "one", *files_of(ONE), "--json")
    again = await cli("circuits", "add", "one", *files_of(ONE), "--json")
    assert again.object == first.object
    other = await cli("circuits", "add", "one", *files_of(EDGE / "no-public-bn254"))
    assert other.code == 2
    assert "use another name, or remove it first" in other.err


@pytest.mark.parametrize("damage", ["cut", "extended", "flipped"])
@pytest.mark.parametrize("role", ["zkey", "wasm", "r1cs"])
async def test_a_damaged_file_is_named_and_nothing_is_added(
    cli: Cli, tmp_path: Path, damage: str, role: str
) -> None:
    shutil.copytree(ONE, tmp_path / "c")
    path = tmp_path / "c" / f"circuit.{role}"
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-20:]
    elif damage == "extended":
        data += bytes(7)
    else:
        data[8] ^= 0x40
    path.write_bytes(data)
    ended = await cli("circuits", "add", "one", *files_of(tmp_path / "c"))
    assert ended.code == 2
    assert str(path) in ended.err
    assert (await cli("circuits", "list", "--json")).object == {"circuits": [], "broken": {}}


@pytest.mark.parametrize("protocol", ["plonk", "fflonk"])
async def test_keys_of_other_protocols_are_refused_by_name(cli: Cli, protocol: str) -> None:
    ended = await cli("circuits", "add", "c", "--zkey", HOSTILE / f"{protocol}.zkey")
    assert ended.code == 2
    assert protocol.upper() in ended.err.upper()


async def test_files_of_different_circuits_do_not_make_one(cli: Cli) -> None:
    other = EDGE / "no-public-bn254"
    ended = await cli(
        *("circuits", "add", "c", "--zkey", ONE / "circuit.zkey"),
        *("--r1cs", other / "circuit.r1cs"),
    )
    assert ended.code == 2
    assert "do not fit" in ended.err


async def test_an_altered_file_of_the_catalogue_ends_verify_with_one(
    cli: Cli, data_dir: Path
) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    path = data_dir / "circuits" / "one" / "zkey"
    path.write_bytes(path.read_bytes() + b"x")
    ended = await cli("circuits", "verify", "--json")
    assert ended.code == 1
    assert "one: zkey was altered" in ended.object["problems"][0]
    assert "one: zkey was altered" in ended.err


async def test_a_manifest_edited_by_hand_ends_verify_with_one_and_is_listed_as_unusable(
    cli: Cli, data_dir: Path
) -> None:
    await cli("circuits", "add", "one", *files_of(ONE))
    setup = ("circuits", "setup", "two", "--r1cs", ONE / "circuit.r1cs", "--insecure")
    assert (await cli(*setup)).code == 0
    for name, before, after, what in (
        ("one", b'"n_public":1', b'"n_public":2', "vk is of 1 public inputs, not of 2"),
        ("two", b'"insecure":true,', b"", "zkey is of a development set-up"),
    ):
        path = data_dir / "circuits" / name / "manifest.json"
        text = path.read_bytes()
        assert text.count(before) == 1
        path.write_bytes(text.replace(before, after))
        for arguments in (("verify",), ("verify", name)):
            ended = await cli("circuits", *arguments, "--json")
            assert ended.code == 1
            assert f"{name}: " in ended.object["problems"][0]
            assert what in ended.object["problems"][0]
            assert "remove the circuit and add it again" in ended.err
        listed = (await cli("circuits", "list", "--json")).object
        assert what in listed["broken"][name]
        assert name not in [circuit["circuit_id"] for circuit in listed["circuits"]]
        shown = (await cli("circuits", "show", name, "--json")).object
        assert what in shown["problems"][0]
        path.write_bytes(text)
    assert (await cli("circuits", "verify")).code == 0


async def test_removing_without_the_scheduler_that_left_its_address_works(
    cli: Cli, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita.cli.circuits._PROBE_S", 0)
    await cli("circuits", "add", "one", *files_of(ONE))
    (data_dir / "run").mkdir()
    (data_dir / "run" / "scheduler.json").write_text('{"listen": "127.0.0.1:1"}')
    assert (await cli("circuits", "remove", "one")).code == 0
    assert (await cli("circuits", "list", "--json")).object["circuits"] == []
