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
    monkeypatch.delenv("PARTITA_SCHEDULER__METRICS_LISTEN", raising=False)
    monkeypatch.setenv("PARTITA_SCHEDULER__MAX_UPLOADS", "3")
    shown = await cli("config", "show", path, "--json")
    assert shown.object == {"scheduler": {"max_uploads": 3}, "prover": {"memory": "3GiB"}}
    effective = await cli("config", "show", path, "--effective", "--json")
    assert effective.object["scheduler"]["max_uploads"] == 3
    assert effective.object["scheduler"]["beat"] == "5s"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[prover]\nmemory = "64G"\n', "memory = '64G': '64G' is not a size; write it like"),
        ("[prover]\nmemory = 64\n", "memory = 64: needs a unit; write it like 512MiB"),
        ('[prover]\nmemroy = "64GiB"\n', "unknown key 'memroy'; did you mean 'memory'"),
        ('[scheduler]\nmax_blob = "-1GiB"\n', "max_blob = '-1GiB': '-1GiB' must not be negative"),
        ("[scheduler]\nmax_blob = -1\n", "max_blob = -1: must not be negative"),
        ('[scheduler]\nbeat = "0"\n', "beat = 0: Input should be greater than 0"),
        ("[scheduler]\nmax_open_jobs = 0\n", "max_open_jobs = 0"),
        ('[scheduler]\nfingerprint_gate = "exakt"\n', "'report' or 'exact'"),
        ('[schedule]\nlisten = "x"\n', "unknown table or key 'schedule'; did you mean 'scheduler'"),
        ('[scheduler]\nlisten = "0.0.0.0:1"\n', "listen = '0.0.0.0:1' is neither"),
        ('listen = "x"\n', "'listen'"),
        ('[scheduler]\nlisten = "127.0.0.1"\n', "listen = '127.0.0.1': '127.0.0.1' is no address"),
        ('[prover]\nlisten = "127.0.0.1:99999"\n', "is no address; write host:port"),
        ('[prover]\nschedulers = ["a"]\n', "'a' is no address"),
        ('[scheduler]\nmax_blob = "2GiB"\nblob_quota = "1GiB"\n', "more than blob_quota = 1.0 GiB"),
        ('[scheduler]\nbeat = "1m"\n', "beat = 1m00s, unresponsive = "),
        ("[scheduler\n", "not TOML"),
    ],
)
async def test_what_is_wrong_in_a_file_is_refused_before_anything_runs(
    cli: Cli, tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(text)
    for command in (("config", "check", path), ("up", "--config", path)):
        ended = await cli(*command)
        assert ended.code == 2
        assert says in ended.err
        assert str(path) in ended.err
        assert ended.err.count("\n") == 1


async def test_every_key_is_documented_with_its_variable(cli: Cli) -> None:
    from partita.prover.config import ProverConfig
    from partita.scheduler.config import SchedulerConfig

    lines = (await cli("config", "default")).out.splitlines()
    for model in (SchedulerConfig, ProverConfig):
        for name, field in model.model_fields.items():
            assert field.description
            at = lines.index(f"# PARTITA_{model.table.upper()}__{name.upper()}")
            assert lines[at - 1] == f"# {field.description}"
            assert lines[at + 1].lstrip("# ").startswith(f"{name} =")
