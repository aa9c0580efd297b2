"""`partita circuits setup`: development keys, made here and named as what they are."""

import asyncio
import json
from pathlib import Path

import pytest

from partita.circuits.development import DEVELOPMENT_MARK
from tests.cli.conftest import Cli
from tests.small_disk import filled, read_only, small_disk

EDGE = Path("tests/vectors/edge")
ONE = EDGE / "one-constraint-bn254"
ONE_BLS = EDGE / "one-constraint-bls12-381"
MARK = "INSECURE key, for development only"


def list_folder(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def files_of(folder: Path) -> list[object]:
    return [
        *("--r1cs", folder / "circuit.r1cs"),
        *("--wasm", folder / "circuit.wasm"),
        *("--sym", folder / "circuit.sym"),
    ]


async def test_without_insecure_nothing_is_made_and_the_reason_is_said(cli: Cli) -> None:
    ended = await cli("circuits", "setup", "one", *files_of(ONE))
    assert ended.code == 2
    assert "proves nothing to anyone else" in ended.err
    assert "--insecure" in ended.err
    assert (await cli("circuits", "list", "--json")).object["circuits"] == []


@pytest.mark.parametrize(
    ("folder", "family"), [(ONE, "snarkjs"), (ONE_BLS, "snarkjs"), (ONE_BLS, "bellperson")]
)
async def test_a_circuit_sets_itself_up_proves_and_is_named_insecure_everywhere(
    cli: Cli, tmp_path: Path, folder: Path, family: str
) -> None:
    made = await cli(
        *("circuits", "setup", "one", *files_of(folder), "--insecure", "--family", family),
        "--json",
    )
    assert made.code == 0
    assert "INSECURE" in made.err
    assert (made.object["insecure"], made.object["family"]) == (True, family)
    key_role = "zkey" if family == "snarkjs" else "params"
    assert set(made.object["files"]) == {key_role, "vk", "r1cs", "wasm", "sym"}
    listed = await cli("circuits", "list", "--json")
    assert listed.object["circuits"] == [made.object]
    assert MARK in (await cli("circuits", "list")).out
    assert MARK in (await cli("circuits", "show", "one", "--vkey", tmp_path / "vk.json")).out

    out = tmp_path / "out"
    proved = await cli("prove", "one", "--input", folder / "input.json", "--out", out)
    assert proved.code == 0
    assert MARK in proved.err
    verified = await cli(
        *("verify", "--vkey", tmp_path / "vk.json"),
        *("--public", out / "public.json", "--proof", out / "proof.json"),
    )
    assert verified.code == 0
    assert json.loads((out / "public.json").read_text()) == json.loads(
        (folder / "public.json").read_text()
    )


async def test_one_seed_makes_one_circuit_and_another_seed_another(
    cli: Cli, tmp_path: Path
) -> None:
    def made(name: str, seed: int) -> tuple[object, ...]:
        zkey = tmp_path / f"{name}.zkey"
        return (
            *("circuits", "setup", name, *files_of(ONE), "--insecure"),
            *("--seed", seed, "--zkey", zkey, "--json"),
        )

    first = await cli(*made("a", 7))
    again = await cli(*made("a", 7))
    assert first.object == again.object
    assert "anyone who knows the seed 7 can forge" in first.err
    same, other = await cli(*made("b", 7)), await cli(*made("c", 8))
    assert same.object["manifest_sha256"] == first.object["manifest_sha256"]
    assert other.object["manifest_sha256"] != first.object["manifest_sha256"]
    assert (await cli(*made("a", 8))).code == 2, "the name is bound"
    keys = [(tmp_path / f"{name}.zkey").read_bytes() for name in "bc"]
    assert keys[0] != keys[1]
    assert {path.name for path in await asyncio.to_thread(list_folder, tmp_path)} == {
        *("data", "a.zkey", "b.zkey", "c.zkey")
    }


async def test_an_exported_key_stays_insecure_where_it_is_added_again(
    cli: Cli, tmp_path: Path
) -> None:
    zkey = tmp_path / "one.zkey"
    await cli("circuits", "setup", "one", *files_of(ONE), "--insecure", "--zkey", zkey)
    added = await cli("circuits", "add", "copy", "--zkey", zkey, "--json")
    assert (added.code, added.object["insecure"]) == (0, True)
    ceremony = await cli("circuits", "add", "other", "--zkey", ONE / "circuit.zkey", "--json")
    assert ceremony.object["insecure"] is False


async def test_a_development_key_of_bellpersons_family_stays_insecure_where_it_is_added_again(
    cli: Cli, data_dir: Path
) -> None:
    made = await cli(
        *("circuits", "setup", "one", *files_of(ONE_BLS), "--insecure"),
        *("--family", "bellperson", "--json"),
    )
    params = data_dir / "circuits" / "one" / "params"
    added = await cli("circuits", "add", "copy", "--params", params, *files_of(ONE_BLS), "--json")
    assert (added.code, added.object["insecure"]) == (0, True)
    assert added.object["manifest_sha256"] == made.object["manifest_sha256"]
    marked = params.read_bytes()
    assert marked.endswith(DEVELOPMENT_MARK)
    ceremony = data_dir / "ceremony.params"
    ceremony.write_bytes(marked.removesuffix(DEVELOPMENT_MARK))
    other = await cli(
        *("circuits", "add", "other", "--params", ceremony, *files_of(ONE_BLS), "--json")
    )
    assert (other.code, other.object["insecure"]) == (0, False)
    assert (data_dir / "circuits" / "other" / "params").read_bytes() == ceremony.read_bytes()


async def test_bellpersons_key_is_added_with_its_circuit_only(cli: Cli, data_dir: Path) -> None:
    made = await cli(
        *("circuits", "setup", "one", *files_of(ONE_BLS), "--insecure"),
        *("--family", "bellperson", "--json"),
    )
    params = data_dir / "circuits" / "one" / "params"
    alone = await cli("circuits", "add", "copy", "--params", params)
    assert (alone.code, "give --r1cs" in alone.err) == (2, True)
    added = await cli("circuits", "add", "copy", "--params", params, *files_of(ONE_BLS), "--json")
    assert added.code == 0
    assert added.object["files"] == made.object["files"]
    other = EDGE / "shapes-bls12-381"
    wrong = await cli("circuits", "add", "x", "--params", params, *files_of(other))
    assert wrong.code == 2
    damaged = bytearray(params.read_bytes())
    damaged[-1] ^= 1
    (data_dir / "damaged").write_bytes(damaged)
    ended = await cli("circuits", "add", "x", "--params", data_dir / "damaged", *files_of(ONE_BLS))
    assert ended.code == 2
    assert "damaged" in ended.err


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("absent/one.zkey", "No such file or directory"),
        ("file/one.zkey", "Not a directory"),
        ("folder", "is there and is no file"),
    ],
)
async def test_an_exported_key_that_cannot_be_written_is_refused_by_its_name_before_any_work(
    cli: Cli, tmp_path: Path, out: str, why: str
) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    zkey = tmp_path / out
    ended = await cli("circuits", "setup", "one", *files_of(ONE), "--insecure", "--zkey", zkey)
    assert ended.code == 2
    assert ended.err.startswith(f"error: --zkey {zkey}: ")
    assert why in ended.err
    assert ".tmp" not in ended.err
    left = {path.name for path in await asyncio.to_thread(list_folder, tmp_path)}
    assert left == {"file", "folder"}, "no data directory was made"


async def test_an_exported_key_on_a_read_only_disk_is_refused_before_any_work(
    cli: Cli, tmp_path: Path, data_dir: Path
) -> None:
    zkey = tmp_path / "disk" / "one.zkey"
    with small_disk(zkey.parent, 1 << 16), read_only(zkey.parent):
        ended = await cli("circuits", "setup", "one", *files_of(ONE), "--insecure", "--zkey", zkey)
    assert ended.code == 2
    assert ended.err.startswith(f"error: --zkey {zkey}: cannot be written: Read-only file system;")
    assert not await asyncio.to_thread(data_dir.exists)


async def test_a_disk_that_fills_up_under_an_exported_key_is_told_after_the_warning(
    cli: Cli, tmp_path: Path, data_dir: Path
) -> None:
    zkey = tmp_path / "disk" / "one.zkey"
    with small_disk(zkey.parent, 1 << 16), filled(zkey.parent):
        ended = await cli("circuits", "setup", "one", *files_of(ONE), "--insecure", "--zkey", zkey)
        assert list_folder(zkey.parent) == [zkey.parent / "filler"]
    assert ended.code == 2
    warning, error = ended.err.splitlines()
    assert "is INSECURE" in warning
    assert error.startswith(f"error: --zkey {zkey}: cannot be written: No space left on device")
    assert str(data_dir / "circuits" / "one" / "zkey") in error
    assert (await cli("circuits", "show", "one", "--json")).object["insecure"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*files_of(ONE), "--family", "bellperson"], "bls12-381"),
        (["--r1cs", ONE / "circuit.wasm"], "starts with"),
        (["--r1cs", ONE / "absent.r1cs"], "absent.r1cs"),
        ([*files_of(ONE), "--family", "bellperson", "--zkey", "x.zkey"], "only keys of family"),
        (
            ["--r1cs", ONE / "circuit.r1cs", "--wasm", ONE_BLS / "circuit.wasm"],
            "curve differs",
        ),
    ],
)
async def test_what_cannot_be_set_up_is_refused_and_nothing_is_added(
    cli: Cli, arguments: list[object], message: str
) -> None:
    ended = await cli("circuits", "setup", "one", "--insecure", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert (await cli("circuits", "list", "--json")).object == {"circuits": [], "broken": {}}


async def test_a_circuit_is_added_with_exactly_one_key(cli: Cli) -> None:
    key = ONE / "circuit.zkey"
    for arguments in ([], ["--zkey", key, "--params", key]):
        ended = await cli("circuits", "add", "one", *arguments)
        assert ended.code == 2
        assert "exactly one of --zkey and --params" in ended.err
