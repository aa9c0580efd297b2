"""Who goes first, and how many at once: seen on the device and in the fleet while work runs."""

from __future__ import annotations

import threading

import grpc

from partita.v1 import dispatch_pb2, fleet_pb2, fleet_pb2_grpc, types_pb2
from tests.system.cluster import EDGE, Cluster, eventually, product_statement
from tests.system.faulty_prover import Fault


def without_outcome(view: fleet_pb2.ProverView) -> list[dispatch_pb2.HeldLease]:
    return [x for x in view.actual.leases if x.WhichOneof("outcome") is None]


def test_critical_work_overtakes_normal_work_that_waits_on_the_scheduler_and_in_the_prover(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    gate = cluster.gate()
    cluster.prover("a", Fault(gate=str(gate.path)), max_leases=3)
    cluster.until_offered("product", "a")
    normal = cluster.submit(range(6))

    def on_the_device_and_before_it() -> tuple[int, int]:
        phases = [x.phase for x in cluster.leases("a")]
        waiting = phases.count(types_pb2.PHASE_WAITING_FOR_DEVICE)
        return phases.count(types_pb2.PHASE_PROVING), waiting

    eventually(lambda: on_the_device_and_before_it() == (1, 2), "one proves and two wait")
    first = cluster.submit([10], priority="critical")
    # Not before it is ready too: the device takes the first that is.
    eventually(lambda: on_the_device_and_before_it() == (1, 3), "the express lease waits as well")
    second = cluster.submit([11], priority="critical")
    low = cluster.submit([12], priority="low")
    high = cluster.submit([13], priority="high")
    assert cluster.begun() == [product_statement(0)]
    gate.open()
    for job_id in (normal, first, second, low, high):
        cluster.completed(job_id)
    order = [cluster.begun().index(product_statement(n)) for n in (10, 11, 13, 3, 4, 5, 12)]
    # In the prover: before the two normal ones that were there. On the scheduler: each class
    # before the lesser ones, and in a class the older first.
    assert order[0] == 1
    assert order == sorted(order)


def test_a_raised_priority_reaches_work_that_waits(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    gate = cluster.gate()
    cluster.prover("a", Fault(gate=str(gate.path)), max_leases=1)
    cluster.until_offered("product", "a")
    older = cluster.submit(range(3))
    cluster.until_at_gate("a")
    younger = cluster.submit([10], request_id="raised")
    assert cluster.submit([10], request_id="raised", priority="high") == younger
    gate.open()
    cluster.completed(older)
    cluster.completed(younger)
    assert cluster.begun()[1] == product_statement(10)


def test_with_a_budget_for_two_partitions_never_more_than_two_are_held(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    probe = cluster.prover("a")
    cluster.until_offered("product", "a")
    offer = cluster.view("a").hello.offers[0]
    assert probe.terminate() == 0
    total_bytes = offer.key.host + 2 * offer.peak.host
    gate = cluster.gate()
    cluster.prover(
        "a", Fault(gate=str(gate.path)), memory=f"{total_bytes}B", max_leases=8, synthesis_threads=4
    )
    cluster.until_offered("product", "a")
    seen: list[fleet_pb2.ProverView] = []
    over = threading.Event()

    def observe() -> None:
        with grpc.insecure_channel(cluster.address) as channel:
            stub = fleet_pb2_grpc.FleetServiceStub(channel)
            while not over.is_set():
                seen.extend(stub.ListProvers(fleet_pb2.ListProversRequest(), timeout=60).provers)

    observer = threading.Thread(target=observe)
    observer.start()
    try:
        job_id = cluster.submit(range(8))
        eventually(lambda: len(without_outcome(cluster.view("a"))) == 2, "two leases held")
        waiting = [x for x in cluster.client.get(job_id).partitions if x.waiting_for]
        assert len(waiting) == 6
        assert "needs" in waiting[0].waiting_for
        assert "a" in waiting[0].waiting_for
        gate.open()
        cluster.completed(job_id)
    finally:
        over.set()
        observer.join()
    views = [view for view in seen if view.hello.total.host == total_bytes]
    assert max(len(without_outcome(view)) for view in views) == 2
    assert max(view.charged.host for view in views) <= total_bytes
    assert max(sum(x.held.host for x in view.actual.leases) for view in views) <= total_bytes


def test_a_partition_that_no_prover_could_hold_says_what_it_needs_and_delays_nobody(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.add("large", EDGE / "many-public-bn254")
    cluster.scheduler()
    probe = cluster.prover("a")
    cluster.until_offered("large", "a")
    cluster.until_offered("product", "a")
    needs = {x.circuit_id: x.key.host + x.peak.host for x in cluster.view("a").hello.offers}
    assert probe.terminate() == 0
    assert needs["large"] > needs["product"]
    # Without a prover nobody can tell that it will not fit, so the job is accepted and waits.
    large = cluster.client.submit(
        "large", [EDGE / "many-public-bn254" / "input.json"], "circom.json"
    ).job.job_id
    small = cluster.submit(range(2))
    cluster.prover("a", memory=f"{needs['large'] - 1}B")
    cluster.completed(small)
    waits_for = cluster.client.get(large).partitions[0].waiting_for
    sizes = [f"{size / 2**20:.1f} MiB" for size in (needs["large"], needs["large"] - 1)]
    assert f"a: needs {sizes[0]}, holds {sizes[1]} when empty" in waits_for
    cluster.prover("b")
    assert cluster.completed(large, "large")[0].prover_id == "b"
