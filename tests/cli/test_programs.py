"""How `up` divides a machine, and what it hands to each program."""

from pathlib import Path

import pytest

from partita.cli.errors import UsageError
from partita.cli.programs import Share, _Plan, _scheduler_nearby, divide

GIB = 1 << 30


@pytest.mark.parametrize("provers", [1, 2, 5])
def test_the_parts_leave_an_eighth_and_the_schedulers_share(provers: int) -> None:
    share = divide(64 * GIB, 16, provers)
    assert share.memory_bytes * provers <= 64 * GIB - 8 * GIB - 4 * GIB
    assert share.memory_bytes * provers > 51 * GIB
    assert share.cores == 16 // provers


def test_more_provers_than_cores_have_one_core_each() -> None:
    assert divide(64 * GIB, 2, 4).cores == 1


def test_parts_too_small_to_prove_anything_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--provers: 8 would have .* MiB each"):
        divide(1 * GIB, 8, 8)


def plan(config: Path | None = None, backend: str | None = None) -> _Plan:
    return _Plan(config, None, backend, 2, Share(3 << 20, 4))


def test_provers_differ_by_id_and_port_and_share_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARTITA_PROVER__PROVER_ID", "box")
    monkeypatch.setenv("PARTITA_PROVER__METRICS_LISTEN", "127.0.0.1:9850")
    first, second = (plan().prover_environment(i, "127.0.0.1:7") for i in range(2))
    assert (first["PARTITA_PROVER__PROVER_ID"], second["PARTITA_PROVER__PROVER_ID"]) == (
        "box-0",
        "box-1",
    )
    assert first["PARTITA_PROVER__LISTEN"] == "127.0.0.1:9840"
    assert second["PARTITA_PROVER__LISTEN"] == "127.0.0.1:9841"
    assert second["PARTITA_PROVER__METRICS_LISTEN"] == "127.0.0.1:9851"
    assert first["PARTITA_PROVER__SCHEDULERS"] == '["127.0.0.1:7"]'
    assert first["PARTITA_PROVER__MEMORY"] == f"{3 << 20}B"
    assert first["PARTITA_PROVER__CORES"] == "4"


def test_what_the_file_says_stays_unless_the_command_line_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(
        '[scheduler]\ndata_dir = "/elsewhere"\n[prover]\nmemory = "1GiB"\ncores = 3\n'
        'listen = "127.0.0.1:0"\nbackend = "reference"\n'
    )
    environment = plan(path).prover_environment(1, "127.0.0.1:7")
    assert environment["PARTITA_PROVER__MEMORY"] == f"{GIB}B"
    assert environment["PARTITA_PROVER__CORES"] == "3"
    assert environment["PARTITA_PROVER__LISTEN"] == "127.0.0.1:0"
    assert environment["PARTITA_PROVER__METRICS_LISTEN"] == ""
    assert environment["PARTITA_PROVER__BACKEND"] == "reference"
    assert environment["PARTITA_PROVER__DATA_DIR"] == "/elsewhere"
    other = plan(path, "native").prover_environment(1, "127.0.0.1:7")
    assert other["PARTITA_PROVER__BACKEND"] == "native"


def test_a_prover_joins_the_scheduler_of_its_data_directory_unless_others_are_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = tmp_path / "data" / "run" / "scheduler.json"
    run_file.parent.mkdir(parents=True)
    run_file.write_text('{"listen": "127.0.0.1:7", "prover_listen": "127.0.0.1:8"}')
    config = tmp_path / "partita.toml"
    config.write_text(f'[prover]\ndata_dir = "{tmp_path / "data"}"\n')
    given = {"data_dir": str(tmp_path / "data")}
    assert _scheduler_nearby(None, given) == "127.0.0.1:8"
    assert _scheduler_nearby(config, {}) == "127.0.0.1:8"
    monkeypatch.setenv("PARTITA_PROVER__SCHEDULERS", '["elsewhere:1"]')
    assert _scheduler_nearby(config, {}) is None
    monkeypatch.delenv("PARTITA_PROVER__SCHEDULERS")
    config.write_text('[prover]\nschedulers = ["elsewhere:1"]\n')
    assert _scheduler_nearby(config, given) is None
    config.write_text('[prover]\nbackend = "bogus"\n')
    assert _scheduler_nearby(config, {**given, "backend": "reference"}) == "127.0.0.1:8"
