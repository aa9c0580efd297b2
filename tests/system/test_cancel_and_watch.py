"""Following a job and giving it up."""

from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor

from partita.v1 import proving_pb2, types_pb2
from partita_client import is_terminal
from tests.system.cluster import EDGE, Cluster, eventually, product_statement
from tests.system.faulty_prover import Fault


def start_gated(cluster: Cluster, **settings: object) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    cluster.prover("a", Fault(gate=str(cluster.gate().path)), **settings)
    cluster.until_offered("product", "a")


def test_cancel_stops_queued_partitions_at_once_and_the_running_one_at_its_next_stage(
    cluster: Cluster,
) -> None:
    start_gated(cluster, max_leases=2)
    job_id = cluster.submit(range(6))
    cluster.until_at_gate("a")
    eventually(lambda: len(cluster.leases("a")) == 2, "one lease on the device, one before it")
    job = cluster.client.cancel(job_id, "not needed")
    assert job.state == proving_pb2.JOB_STATE_CANCELLED
    assert {x.state for x in job.partitions} == {proving_pb2.PARTITION_STATE_DROPPED}

    def only_the_running_one_stops() -> bool:
        return [x.phase for x in cluster.leases("a")] == [types_pb2.PHASE_STOPPING]

    eventually(only_the_running_one_stops, "the waiting lease is gone, the running one stops")
    cluster.gates[0].open()
    eventually(lambda: not cluster.leases("a"), "the prover holds nothing")
    assert cluster.begun() == [product_statement(0)]
    assert cluster.nearly_done() == []
    assert cluster.client.cancel(job_id).state == proving_pb2.JOB_STATE_CANCELLED
    assert cluster.completed(cluster.submit([0]))[0].attempt == 1


def test_the_command_line_cancels_and_await_then_fails(cluster: Cluster) -> None:
    start_gated(cluster)
    job_id = cluster.submit(range(2))
    cancelled = cluster.command("cancel", job_id, "--json")
    assert cancelled.returncode == 0, cancelled.stderr
    assert json.loads(cancelled.stdout)["state"] == "cancelled"
    awaited = cluster.command("await", job_id)
    assert awaited.returncode == 1
    assert "cancelled" in awaited.stderr


def test_a_watch_and_a_wait_survive_a_scheduler_restart(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    scheduler = cluster.scheduler()
    cluster.prover("a", Fault(gate=str(cluster.gate().path), gate_from=2))
    cluster.until_offered("product", "a")
    job_id = cluster.submit(range(4))
    environment = cluster.command_environment()
    command = cluster.launch("watch", ["-m", "partita.cli.main", "watch", job_id], environment)
    seen: list[proving_pb2.Job] = []

    def follow() -> None:
        for job in cluster.new_client().watch(job_id):
            seen.append(job)  # noqa: PERF402 - the test looks at it while it grows

    with ThreadPoolExecutor(2) as pool:
        watching = pool.submit(follow)
        waiting = pool.submit(cluster.new_client().wait, job_id, 60)
        eventually(lambda: seen and seen[-1].partitions_done == 1, "the watch saw the first proof")
        eventually(lambda: "1/4" in command.text, "the command saw the first proof")
        scheduler.kill()
        cluster.scheduler()
        cluster.gates[0].open()
        watching.result(60)
        assert waiting.result(60).state == proving_pb2.JOB_STATE_COMPLETED
    assert command.wait() == 0
    assert [is_terminal(job) for job in seen] == [False] * (len(seen) - 1) + [True]
    assert seen[-1].partitions_done == 4


def test_a_deadline_that_passes_fails_the_job_and_stops_its_work(cluster: Cluster) -> None:
    start_gated(cluster)
    # On a slow machine it may pass before a proof comes to the gate: then a later one is tried.
    for seconds in (1, 2, 4, 8, 16, 32):
        deadline = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
        job_id = cluster.submit(range(3), deadline=deadline)
        job = cluster.client.wait(job_id, 60)
        assert job.state == proving_pb2.JOB_STATE_FAILED
        assert job.failure.reason == "DEADLINE_EXCEEDED"
        if cluster.came_to_gate("a"):
            break
    assert cluster.came_to_gate("a")
    stopping = [types_pb2.PHASE_STOPPING]
    eventually(lambda: [x.phase for x in cluster.leases("a")] == stopping, "the running one stops")
    cluster.gates[0].open()
    eventually(lambda: not cluster.leases("a"), "the prover holds nothing")
    assert cluster.nearly_done() == []


def test_a_job_that_nobody_waits_for_is_given_up_where_that_was_asked_for(
    cluster: Cluster,
) -> None:
    start_gated(cluster)
    job_id = cluster.submit(range(2), abandon_after=dt.timedelta(milliseconds=200))
    eventually(lambda: is_terminal(cluster.client.get(job_id)), "the job is given up")
    job = cluster.client.get(job_id)
    assert job.failure.reason == "ABANDONED"
    assert {x.state for x in job.partitions} == {proving_pb2.PARTITION_STATE_DROPPED}
