"""Two builds in one fleet: the difference is told, the gate refuses it, a stale process says so.

Every process runs from a copy of the tree, so that one line can be changed in one copy.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from partita.service.fingerprint import STALE_FEATURE
from tests.system.cluster import EDGE, ROOT, Cluster, Process, eventually


class Trees:
    """Copies of the packages; `use` says from which one the next processes run."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._monkeypatch = monkeypatch
        for name in ("here", "there"):
            for packages in ("services", "clients/python"):
                shutil.copytree(
                    ROOT / packages,
                    root / name / packages,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )

    def use(self, name: str) -> None:
        folders = (self._root / name / "services", self._root / name / "clients" / "python")
        self._monkeypatch.setenv("PYTHONPATH", ":".join(map(str, folders)))

    def change_a_line(self, name: str) -> None:
        path = self._root / name / "services" / "partita" / "prover" / "stages.py"
        path.write_text(path.read_text() + "# another line\n")

    def speak(self, name: str, contract: int) -> None:
        """Let the provers of a tree speak another revision of the contract."""
        path = self._root / name / "services" / "partita" / "prover" / "link.py"
        known = path.read_text()
        assert known.count("\nCONTRACT = 1\n") == 1
        path.write_text(known.replace("\nCONTRACT = 1\n", f"\nCONTRACT = {contract}\n"))


@pytest.fixture
def trees(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Trees:
    """Two copies of this tree; processes run from the one called "here"."""
    cluster.add("product", EDGE / "one-constraint-bn254")
    trees = Trees(cluster.root / "trees", monkeypatch)
    trees.use("here")
    return trees


def prover_of(
    cluster: Cluster, trees: Trees, tree: str, prover_id: str, **settings: Any
) -> Process:
    """Start a prover from a tree; what is started next runs from "here" again."""
    trees.use(tree)
    process = cluster.prover(prover_id, **settings)
    trees.use("here")
    return process


def until_connected(cluster: Cluster, prover_id: str) -> None:
    eventually(lambda: cluster.view(prover_id).connected, f"{prover_id} connected")


def compared(cluster: Cluster) -> tuple[int, dict[str, dict[str, Any]]]:
    """Compare what is installed "here" with what runs; the exit code and the processes by name."""
    ended = cluster.command("fingerprint", "--json", "--compare", cluster.address)
    return ended.returncode, {
        process["process"]: process for process in json.loads(ended.stdout)["compared"]
    }


def test_a_prover_of_another_build_is_told_by_compare_and_by_the_fleet(
    cluster: Cluster, trees: Trees
) -> None:
    trees.change_a_line("there")
    cluster.scheduler()
    prover_of(cluster, trees, "here", "same")
    until_connected(cluster, "same")
    code, processes = compared(cluster)
    assert code == 0
    assert [processes[name]["differences"] for name in ("scheduler", "prover same")] == [[], []]

    prover_of(cluster, trees, "there", "other")
    until_connected(cluster, "other")
    code, processes = compared(cluster)
    assert code == 1
    assert processes["scheduler"]["differences"] == processes["prover same"]["differences"] == []
    (difference,) = processes["prover other"]["differences"]
    assert difference["field"] == "code_sha256"
    assert difference["here"] == processes["scheduler"]["fingerprint"]["code_sha256"]
    assert difference["there"] == processes["prover other"]["fingerprint"]["code_sha256"]

    printed = cluster.command("fingerprint", "--compare", cluster.address)
    assert printed.returncode == 1
    line = (
        f"prover other: code_sha256 is {difference['there'][:12]}, here {difference['here'][:12]}"
    )
    assert line in printed.stdout
    assert "prover same: the same build" in printed.stdout
    fleet = cluster.command("fleet").stdout
    assert f"{line.partition(',')[0]}, on the scheduler {difference['here'][:12]}" in fleet
    assert "prover same:" not in fleet


def test_the_exact_gate_keeps_a_prover_of_another_build_out_and_both_sides_say_why(
    cluster: Cluster, trees: Trees
) -> None:
    trees.change_a_line("there")
    scheduler = cluster.scheduler(fingerprint_gate="exact")
    other = prover_of(cluster, trees, "there", "other")
    prover_of(cluster, trees, "here", "same")
    eventually(lambda: "FINGERPRINT_MISMATCH" in other.text, "the prover says why")
    assert "code_sha256 is" in other.text
    eventually(lambda: "prover.refused" in scheduler.text, "the scheduler says why")
    cluster.until_offered("product", "same")
    parts = cluster.completed(cluster.submit(range(2)))
    assert {part.prover_id for part in parts} == {"same"}
    assert "other" not in cluster.provers()


def test_processes_whose_files_change_on_disk_say_that_they_are_stale_and_go_on(
    cluster: Cluster, trees: Trees
) -> None:
    cluster.scheduler(build_check="50ms")
    prover = prover_of(cluster, trees, "there", "old", build_check="50ms")
    cluster.until_offered("product", "old")
    build = cluster.view("old").hello.fingerprint.code_sha256
    trees.change_a_line("there")
    eventually(lambda: STALE_FEATURE in cluster.view("old").hello.features, "the prover is stale")
    assert cluster.view("old").hello.fingerprint.code_sha256 == build
    assert STALE_FEATURE not in cluster.client.server_info().features
    assert "prover old: stale build" in cluster.command("fleet").stdout
    assert "build.stale" in prover.text
    assert "prover/stages.py" in prover.text
    trees.change_a_line("here")
    eventually(lambda: STALE_FEATURE in cluster.client.server_info().features, "so is the other")
    assert "scheduler: stale build" in cluster.command("fleet").stdout
    assert len(cluster.completed(cluster.submit(range(2)))) == 2


@pytest.mark.parametrize(("contract", "older"), [(0, "prover"), (2, "scheduler")])
def test_a_prover_of_another_contract_is_refused_says_who_is_older_and_others_go_on(
    cluster: Cluster, trees: Trees, contract: int, older: str
) -> None:
    trees.speak("there", contract)
    scheduler = cluster.scheduler()
    other = prover_of(cluster, trees, "there", "other")
    prover_of(cluster, trees, "here", "same")
    says = f"speaks contract revision {contract}, this scheduler revision 1: upgrade the {older}"
    eventually(lambda: says in other.text, "the prover says why")
    eventually(lambda: says in scheduler.text, "the scheduler says why")
    assert "CONTRACT_MISMATCH" in other.text
    cluster.until_offered("product", "same")
    parts = cluster.completed(cluster.submit(range(2)))
    assert {part.prover_id for part in parts} == {"same"}
    assert "other" not in cluster.provers()
