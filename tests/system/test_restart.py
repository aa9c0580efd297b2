"""Processes that are killed in the middle: nothing is lost, nothing verified is proved again."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from partita.v1 import proving_pb2, types_pb2
from tests.system.cluster import (
    EDGE,
    Cluster,
    Process,
    eventually,
    product_statement,
)
from tests.system.faulty_prover import Fault


def done(cluster: Cluster, job_id: str) -> int:
    return int(cluster.client.get(job_id).partitions_done)


def in_the_middle(cluster: Cluster) -> tuple[Process, str]:
    """Ten partitions on two provers: each has proved one and stands in the middle of another."""
    cluster.add("product", EDGE / "one-constraint-bn254")
    scheduler = cluster.scheduler()
    fault = Fault(gate=str(cluster.gate().path), gate_from=2)
    for name in ("a", "b"):
        cluster.prover(name, fault, max_leases=2)
    cluster.until_offered("product", "a", "b")
    job_id = cluster.submit(range(10))
    both = sorted([types_pb2.PHASE_WAITING_FOR_DEVICE, types_pb2.PHASE_PROVING])

    def stand() -> bool:
        # Also what was granted last is there: a prover that never heard of it does not keep it.
        held = [sorted(x.phase for x in cluster.leases(name)) for name in ("a", "b")]
        return held == [both] * 2 and len(cluster.begun()) == 4

    eventually(
        lambda: done(cluster, job_id) == 2 and stand(),
        "two partitions proved, two in the middle and two before the device",
    )
    return scheduler, job_id


def check_each_was_proved_once(cluster: Cluster, job_id: str) -> None:
    partitions = cluster.completed(job_id)
    assert [x.statement for x in partitions] == [product_statement(n) for n in range(10)]
    assert sorted(cluster.begun()) == sorted(product_statement(n) for n in range(10))
    assert {x.attempt for x in partitions} == {1}
    assert not any(x.failures for x in partitions)


def test_a_scheduler_killed_in_the_middle_ends_the_job_and_no_partition_is_proved_again(
    cluster: Cluster,
) -> None:
    scheduler, job_id = in_the_middle(cluster)
    epoch = cluster.client.server_info().epoch
    scheduler.kill()
    cluster.scheduler()
    assert cluster.client.server_info().epoch > epoch
    assert done(cluster, job_id) == 2
    cluster.gates[0].open()
    check_each_was_proved_once(cluster, job_id)


def test_proofs_that_end_while_the_scheduler_is_dead_are_kept_and_taken(cluster: Cluster) -> None:
    scheduler, job_id = in_the_middle(cluster)
    scheduler.kill()
    cluster.gates[0].open()

    def finished() -> bool:
        views = [cluster.own_view(name).actual for name in ("a", "b")]
        return all(
            any(lease.WhichOneof("outcome") == "proved" for lease in view.leases) for view in views
        )

    eventually(finished, "both provers keep an outcome")
    cluster.scheduler()
    check_each_was_proved_once(cluster, job_id)


def test_a_scheduler_told_to_stop_in_the_middle_exits_0_and_loses_nothing(
    cluster: Cluster,
) -> None:
    scheduler, job_id = in_the_middle(cluster)
    assert scheduler.terminate() == 0
    cluster.scheduler()
    cluster.gates[0].open()
    check_each_was_proved_once(cluster, job_id)


def test_results_are_the_same_bytes_after_a_restart(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    scheduler = cluster.scheduler()
    cluster.prover("a")
    job_id = cluster.submit(range(3), request_id="kept")
    before = cluster.completed(job_id)
    scheduler.kill()
    cluster.scheduler()
    after = cluster.completed(job_id)
    assert [x.SerializeToString(deterministic=True) for x in after] == [
        x.SerializeToString(deterministic=True) for x in before
    ]


def test_the_partitions_of_a_killed_prover_go_on_elsewhere(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler(grace="300ms")
    gate = cluster.gate()
    victim = cluster.prover("a", Fault(gate=str(gate.path), gate_from=2), max_leases=2)
    cluster.until_offered("product", "a")
    job_id = cluster.submit(range(8))

    def leased() -> set[int]:
        partitions = cluster.client.get(job_id).partitions
        return {x.index for x in partitions if x.state == proving_pb2.PARTITION_STATE_LEASED}

    # a has proved one, is in the middle of one and holds another; b then proves everything else.
    eventually(
        lambda: (done(cluster, job_id), len(cluster.begun()), len(leased())) == (1, 2, 2),
        "a in its second proof",
    )
    held = leased()
    cluster.prover("b")
    eventually(lambda: done(cluster, job_id) == 6, "all proved but what a holds")
    assert leased() == held
    victim.kill()
    partitions = cluster.completed(job_id)
    for partition in partitions:
        assert partition.attempt == (2 if partition.index in held else 1)
        assert not partition.failures
    assert {partitions[index].prover_id for index in held} == {"b"}
    begun = Counter(cluster.begun())
    assert sorted(begun.values()) == [1] * 7 + [2]
    assert next(n for n in range(8) if begun[product_statement(n)] == 2) in held


def test_a_partition_whose_prover_dies_in_native_code_is_proved_by_another(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler(grace="300ms")
    crashing = cluster.prover("a", Fault(dies=True))
    cluster.until_offered("product", "a")
    job_id = cluster.submit(range(2))
    assert crashing.wait() == -6
    cluster.prover("b")
    partitions = cluster.completed(job_id)
    assert {x.prover_id for x in partitions} == {"b"}
    assert not any(x.failures for x in partitions)


@pytest.mark.slow
def test_a_job_ends_though_scheduler_and_provers_are_killed_again_and_again(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    scheduler = cluster.scheduler(grace="1s")
    provers = {name: cluster.prover(name) for name in ("a", "b")}
    cluster.until_offered("product", "a", "b")
    numbers = range(400)
    job_id = cluster.submit(numbers)

    def reached(target: int) -> bool:
        return done(cluster, job_id) >= target

    for round_number in range(1, 9):
        target = round_number * 40
        eventually(partial(reached, target), f"{target} proved")
        if round_number % 2:
            scheduler.kill()
            scheduler = cluster.scheduler(grace="1s")
        else:
            name = ("a", "b")[round_number // 2 % 2]
            provers[name].kill()
            provers[name] = cluster.prover(name)
        assert reached(target), "what was shown as done is durable"
    partitions = cluster.completed(job_id)
    assert [x.statement for x in partitions] == [product_statement(n) for n in numbers]
    # Only what a killed prover held can have been begun twice.
    extra = len(cluster.begun()) - len(numbers)
    assert 0 <= extra <= 4 * 4
