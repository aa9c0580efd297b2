"""`config`: what it prints is what it accepts."""

import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


async def test_the_default_file_is_accepted_and_has_both_programs(cli: Cli, tmp_path: Path) -> None:
    printed = await cli("config", "default")
    assert set(tomllib.loads(printed.out)) == {"scheduler", "prover"}
    assert "# PARTITA_SCHEDULER__LISTEN" in printed.out
    path = tmp_path / "partita.toml"
    path.write_text(printed.out)
    assert (await cli("config", "check", path)).code == 0


async def test_a_wrong_key_is_named_with_the_nearest(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text('[scheduler]\nlisen = "127.0.0.1:1"\n')
    ended = await cli("config", "check", path)
    assert ended.code == 2
    assert "'lisen'" in ended.err
    assert "'listen'" in ended.err


async def test_show_has_what_was_changed_and_effective_has_everything(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "partita.toml"
    path.write_text('[prover]\nmemory = "3GiB"\n')
    monkeypatch.setenv("PARTITA_SCHEDULER__MAX_UPLOADS", "3")
    shown = await cli("config", "show", path, "--json")
    assert shown.object == {"scheduler": {"max_uploads": 3}, "prover": {"memory": "3GiB"}}
    effective = await cli("config", "show", path, "--effective", "--json")
    assert effective.object["scheduler"]["max_uploads"] == 3
    assert effective.object["scheduler"]["beat"] == "5s"
