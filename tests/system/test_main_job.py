"""The main job: partitions with different inputs come back as proofs in order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from partita.v1 import proving_pb2
from tests.system.cluster import (
    EDGE,
    MERKLE,
    Cluster,
    product_input,
    product_statement,
)

both_curves = pytest.mark.parametrize("curve", ["bn254", "bls12-381"])


def start_two(cluster: Cluster, circuit_id: str) -> None:
    cluster.scheduler()
    for name in ("a", "b"):
        cluster.prover(name)
    cluster.until_offered(circuit_id, "a", "b")


@both_curves
def test_ten_partitions_with_ten_inputs_return_ten_proofs_in_order(
    cluster: Cluster, curve: str
) -> None:
    cluster.add("product", EDGE / f"one-constraint-{curve}")
    start_two(cluster, "product")
    partitions = cluster.completed(cluster.submit(range(10)))
    expected = [product_statement(number) for number in range(10)]
    assert [partition.statement for partition in partitions] == expected
    assert len({partition.proof for partition in partitions}) == 10
    assert {partition.attempt for partition in partitions} == {1}
    assert {partition.prover_id for partition in partitions} == {"a", "b"}
    assert sorted(cluster.begun()) == sorted(expected)


def test_witnesses_and_inputs_by_name_give_the_same_statements_from_their_own_sources(
    cluster: Cluster,
) -> None:
    folder = EDGE / "one-constraint-bn254"
    cluster.add("product", folder)
    start_two(cluster, "product")
    by_witness = cluster.client.prove("product", [folder / "witness.wtns"], "wtns")[0]
    by_name = cluster.client.prove("product", [folder / "input.json"], "circom.json")[0]
    stated = json.loads((folder / "public.json").read_text())
    assert by_witness.statement == b"".join(int(x).to_bytes(32, "little") for x in stated)
    assert by_name.statement == by_witness.statement
    assert by_witness.statement_source == proving_pb2.STATEMENT_SOURCE_INPUT
    assert by_name.statement_source == proving_pb2.STATEMENT_SOURCE_PROVER


def test_a_submitted_statement_that_the_input_does_not_give_fails_and_names_the_mismatch(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    start_two(cluster, "product")
    job_id = cluster.submit([0], statements=[product_statement(1)])
    job = cluster.client.wait(job_id, 60)
    assert job.state == proving_pb2.JOB_STATE_FAILED
    assert job.failure.reason == "STATEMENT_MISMATCH"
    assert cluster.begun() == []
    good = cluster.completed(cluster.submit([0], statements=[product_statement(0)]))
    assert good[0].statement_source == proving_pb2.STATEMENT_SOURCE_SUBMITTED


@both_curves
def test_the_command_line_proves_memberships_that_snarkjs_verifies(
    cluster: Cluster, curve: str, snarkjs: Path
) -> None:
    count = 4
    folder = MERKLE / curve
    inputs = cluster.root / "inputs"
    tree = [sys.executable, str(MERKLE / "tree.py"), "--curve", curve]
    subprocess.run([*tree, "--count", str(count), "--out", str(inputs)], check=True)
    files = [f"--{role}={folder}/circuit.{role}" for role in ("zkey", "wasm", "r1cs", "sym")]
    assert cluster.command("circuits", "add", "merkle", *files).returncode == 0
    start_two(cluster, "merkle")
    out = cluster.root / "proofs"
    done = cluster.command(
        *("submit", "merkle", "--input", *sorted(inputs.iterdir())),
        *("--wait", "--out", out, "--json"),
    )
    assert done.returncode == 0, done.stderr
    job = cluster.client.get(json.loads(done.stdout)["job_id"])
    partitions = cluster.verified("merkle", job)
    nullifiers = set()
    for index, partition in enumerate(partitions):
        public = json.loads((out / str(index) / "public.json").read_text())
        given = json.loads((inputs / f"input-{index:02}.json").read_text())
        assert partition.statement == b"".join(int(x).to_bytes(32, "little") for x in public)
        assert public[1:] == [given["root"], given["scope"]]
        nullifiers.add(public[0])
    assert len(nullifiers) == count
    for index in (0, count - 1):
        made = [str(out / str(index) / name) for name in ("public.json", "proof.json")]
        verify = [str(snarkjs), "groth16", "verify", "verification_key.json", *made]
        said = subprocess.run(verify, cwd=folder, capture_output=True, text=True, check=False)
        assert "OK!" in said.stdout, said


def test_a_job_submitted_before_any_prover_is_there_waits_and_says_so(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    job_id = cluster.submit(range(2))
    waiting = cluster.client.get(job_id)
    assert waiting.state == proving_pb2.JOB_STATE_QUEUED
    assert waiting.partitions[0].waiting_for
    cluster.prover("a")
    assert [x.prover_id for x in cluster.completed(job_id)] == ["a", "a"]


def test_a_circuit_added_while_everything_runs_is_offered_and_proved(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    cluster.prover("a", data_dir=cluster.root / "elsewhere")
    cluster.until_offered("product", "a")
    cluster.add("other", EDGE / "one-constraint-bls12-381")
    cluster.until_offered("other", "a")
    inputs = [product_input(3)]
    job = cluster.client.submit("other", inputs, "circom.json").job
    assert cluster.completed(job.job_id, "other")[0].statement == product_statement(3)
