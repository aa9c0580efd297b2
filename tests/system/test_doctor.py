"""`partita doctor` on a running cluster: right, and then with things that are wrong."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.system.cluster import EDGE, Cluster


def doctor(cluster: Cluster, *arguments: object) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the command; its exit code and the rows by name."""
    ended = cluster.command("doctor", "--json", *arguments)
    value = json.loads(ended.stdout)
    assert value["ok"] is (ended.returncode == 0)
    return ended.returncode, {row["name"]: row for row in value["checks"]}


def config_file(cluster: Cluster, **lines: str) -> Path:
    path = cluster.root / "partita.toml"
    path.write_text("".join(f'[{table}]\nmetrics_listen = ""\n{x}\n' for table, x in lines.items()))
    return path


def test_a_right_cluster_is_right_and_what_is_broken_is_named_with_a_cure(
    cluster: Cluster,
) -> None:
    entry = cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    prover = cluster.prover("first")
    cluster.until_offered("product", "first")
    config = config_file(
        cluster,
        scheduler=f'listen = "{cluster.address}"\nprover_listen = "{cluster.prover_address}"',
        prover=f'listen = "127.0.0.1:0"\nschedulers = ["{cluster.prover_address}"]',
    )
    code, rows = doctor(cluster, "--config", config, "--full")
    assert code == 0, [row for row in rows.values() if row["status"] == "fail"]
    for name in (
        "scheduler",
        "prover first",
        "own port of first",
        "circuits",
        "configuration",
        "port listen of [scheduler]",
        "native extension",
        "native version",
        f"scheduler for provers {cluster.prover_address}",
    ):
        assert rows[name]["status"] == "ok", rows[name]
    assert "build of prover first" in rows
    assert "this data directory's own" in rows["port listen of [scheduler]"]["found"]

    prover.kill()
    path = entry.file("zkey")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = config_file(
            cluster,
            scheduler=f'listen = "{cluster.address}"\nprover_listen = "{cluster.prover_address}"',
            prover=f'listen = "127.0.0.1:{taken.getsockname()[1]}"\nmemory = "1024TiB"\n'
            f'schedulers = ["{cluster.address}"]',
        )
        code, rows = doctor(cluster, "--config", config)
    assert code == 1
    failed = {name for name, row in rows.items() if row["status"] == "fail"}
    dialled = f"scheduler for provers {cluster.address}"
    assert failed == {"memory", "circuit product", "port listen of [prover]", dialled}
    assert "for clients, not for provers" in rows[dialled]["found"]
    assert all(rows[name]["cure"] for name in failed)
    assert str(path) in rows["circuit product"]["found"]
    assert rows["own port of first"]["status"] == "warn"

    plain = cluster.command("doctor", "--config", config)
    assert plain.returncode == 1
    assert "wrong here: " in plain.stderr
    assert "what to do" in plain.stdout


def test_a_wrong_file_and_a_scheduler_that_is_not_there_fail(cluster: Cluster) -> None:
    config = config_file(cluster, scheduler='max_blob = "64G"')
    code, rows = doctor(cluster, "--config", config, "--scheduler", "127.0.0.1:9")
    assert code == 1
    assert rows["configuration"]["status"] == rows["scheduler"]["status"] == "fail"
    assert "max_blob = '64G'" in rows["configuration"]["found"]
    assert "127.0.0.1:9" in rows["scheduler"]["found"]
