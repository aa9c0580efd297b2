"""`partita doctor` where no scheduler runs: which addresses it looks at, and that it always ends
with a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Ended

CONFIG = """
[scheduler]
listen = "127.0.0.1:5"
prover_listen = "127.0.0.1:0"
metrics_listen = ""
[prover]
listen = "127.0.0.1:0"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "partita.toml")


def write_config(path: Path, more: str = "") -> Path:
    path.write_text(CONFIG + more)
    return path


@pytest.fixture
def endless_circuits(data_dir: Path) -> None:
    """A folder of circuits that nobody can list, root neither."""
    data_dir.mkdir()
    (data_dir / "circuits").symlink_to("circuits")


def rows_of(ended: Ended) -> dict[str, dict[str, str]]:
    """The rows by name, after a look at whether the exit code fits them."""
    rows = {row["name"]: row for row in ended.object["checks"]}
    assert ended.code == int(any(row["status"] == "fail" for row in rows.values()))
    assert all(row["cure"] for row in rows.values() if row["status"] != "ok")
    return rows


def write_run_file(data_dir: Path, name: str, **content: object) -> None:
    (data_dir / "run").mkdir(parents=True, exist_ok=True)
    (data_dir / "run" / f"{name}.json").write_text(json.dumps(content))


async def test_the_named_scheduler_is_asked_else_the_running_else_the_configured(
    cli: Cli, data_dir: Path, config: Path
) -> None:
    row = rows_of(await cli("doctor", "--json", "--config", config))["scheduler"]
    assert (row["status"], row["found"]) == ("warn", "nobody answers at 127.0.0.1:5")
    write_run_file(data_dir, "scheduler", listen="127.0.0.1:6")
    row = rows_of(await cli("doctor", "--json", "--config", config))["scheduler"]
    assert (row["status"], row["found"]) == ("fail", "nobody answers at 127.0.0.1:6")
    ended = await cli("doctor", "--json", "--config", config, "--scheduler", "127.0.0.1:7")
    row = rows_of(ended)["scheduler"]
    assert (row["status"], row["found"]) == ("fail", "nobody answers at 127.0.0.1:7")
    assert (await cli("doctor", "--config", config, "--scheduler", "nonsense")).code == 2


async def test_every_address_that_a_prover_dials_has_a_row(
    cli: Cli, data_dir: Path, config: Path
) -> None:
    write_run_file(data_dir, "scheduler", prover_listen="127.0.0.1:6")
    rows = rows_of(await cli("doctor", "--json", "--config", config))
    assert rows["scheduler for provers 127.0.0.1:6"]["status"] == "fail"
    write_config(config, 'schedulers = ["127.0.0.1:1", "127.0.0.1:2"]\n')
    rows = rows_of(await cli("doctor", "--json", "--config", config))
    assert "scheduler for provers 127.0.0.1:6" not in rows
    for address in ("127.0.0.1:1", "127.0.0.1:2"):
        row = rows[f"scheduler for provers {address}"]
        assert row["status"] == "fail"
        assert f"nobody answers at {address}" in row["found"]


async def test_a_data_directory_that_is_a_file_fails_by_name_and_the_report_is_whole(
    cli: Cli, tmp_path: Path, config: Path
) -> None:
    rows = rows_of(await cli("doctor", "--json", "--config", config, "--data-dir", config))
    for name in ("data directory", "circuits"):
        assert rows[name]["status"] == "fail"
        assert str(config) in rows[name]["found"]
    assert {"scheduler", "scheduler for provers 127.0.0.1:9831"} <= set(rows)


@pytest.mark.usefixtures("endless_circuits")
async def test_circuits_that_cannot_be_listed_fail_by_name_and_the_report_is_whole(
    cli: Cli, config: Path
) -> None:
    rows = rows_of(await cli("doctor", "--json", "--config", config))
    assert rows["circuits"]["status"] == "fail"
    assert "Too many levels of symbolic links" in rows["circuits"]["found"]
    assert "scheduler" in rows


async def test_a_run_file_of_nonsense_does_not_end_the_report(
    cli: Cli, data_dir: Path, config: Path
) -> None:
    write_run_file(data_dir, "scheduler", listen="no address", prover_listen="none", pid=-1)
    write_run_file(data_dir, "first", address="127.0.0.1:1", pid=10**30)
    (data_dir / "run" / "deep.json").write_text("[" * 100_000)
    rows = rows_of(await cli("doctor", "--json", "--config", config))
    assert rows["scheduler"]["status"] == "fail"
    assert "no address" in rows["scheduler"]["found"]
    assert rows["scheduler for provers none"]["status"] == "fail"
    assert rows["ports"]["found"].startswith("cannot be checked: RecursionError")


async def test_an_unforeseen_error_is_a_row_for_people_too(
    cli: Cli, data_dir: Path, config: Path
) -> None:
    write_run_file(data_dir, "first", address="127.0.0.1:1", pid=1)
    (data_dir / "run" / "deep.json").write_text("[" * 100_000)
    ended = await cli("doctor", "--config", config)
    assert ended.code == 1
    assert "cannot be checked: RecursionError" in ended.out
    assert "wrong here: " in ended.err
