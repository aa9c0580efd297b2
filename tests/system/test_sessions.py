"""Sessions of provers: identity, contract, drain, silence; and who owns a data directory."""

from __future__ import annotations

import signal

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from partita.v1 import dispatch_pb2, dispatch_pb2_grpc, proving_pb2, types_pb2
from tests.system.cluster import DEADLINE_S, EDGE, Cluster, Process, eventually
from tests.system.faulty_prover import Fault


def start(cluster: Cluster, **settings: object) -> Process:
    cluster.add("product", EDGE / "one-constraint-bn254")
    return cluster.scheduler(**settings)


def test_of_two_provers_with_one_id_the_second_is_turned_away_until_the_first_has_gone(
    cluster: Cluster,
) -> None:
    start(cluster)
    first = cluster.prover("twin")
    cluster.until_offered("product", "twin")
    instance = cluster.view("twin").hello.instance_id
    second = cluster.prover("twin", data_dir=cluster.root / "second")
    eventually(lambda: "PROVER_ID_IN_USE" in second.text, "the second says why")
    assert cluster.view("twin").hello.instance_id == instance
    assert len(cluster.completed(cluster.submit(range(2)))) == 2
    first.kill()

    def taken_over() -> bool:
        view = cluster.view("twin")
        return view.connected and view.hello.instance_id != instance

    eventually(taken_over, "the second takes the place")
    assert len(cluster.completed(cluster.submit(range(2, 4)))) == 2


def test_a_prover_of_another_contract_revision_is_refused_with_what_to_install(
    cluster: Cluster,
) -> None:
    start(cluster)
    hello = dispatch_pb2.Hello(
        prover_id="future",
        instance_id="1",
        contract_min=999,
        contract_max=1000,
        total=types_pb2.Bytes(host=1 << 30),
        max_leases=1,
    )
    with grpc.insecure_channel(cluster.prover_address) as channel:
        stub = dispatch_pb2_grpc.DispatchServiceStub(channel)
        answers = stub.Work(iter([dispatch_pb2.WorkRequest(hello=hello)]), timeout=DEADLINE_S)
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.reason == "CONTRACT_MISMATCH"
    details = caught.value.details() or ""
    assert "999 to 1000" in details
    assert "install" in details
    assert "future" not in cluster.provers()
    cluster.prover("present")
    assert len(cluster.completed(cluster.submit([0]))) == 1


def test_a_prover_told_to_stop_finishes_what_it_computes_hands_the_rest_back_and_exits_0(
    cluster: Cluster,
) -> None:
    start(cluster)
    gate = cluster.gate()
    leaving = cluster.prover("leaving", Fault(gate=str(gate.path)), max_leases=3)
    cluster.until_offered("product", "leaving")
    job_id = cluster.submit(range(6))
    cluster.until_at_gate("leaving")
    leaving.signal(signal.SIGTERM)

    def draining() -> bool:
        return cluster.view("leaving").actual.condition == dispatch_pb2.CONDITION_DRAINING

    eventually(draining, "the scheduler knows")
    assert leaving.running
    cluster.prover("staying")
    cluster.until_offered("product", "staying")
    # All that the leaving one does not finish is proved while it still stands at the gate.
    held = {x.partition_index for x in cluster.leases("leaving")}

    def others_proved() -> bool:
        parts = cluster.client.get(job_id).partitions
        rest = [x for x in parts if x.index not in held]
        return all(x.state == proving_pb2.PARTITION_STATE_PROVED for x in rest)

    eventually(others_proved, "the other prover has done the rest")
    gate.open()
    partitions = cluster.completed(job_id)
    assert leaving.wait() == 0
    assert {x.prover_id for x in partitions} == {"leaving", "staying"}
    assert partitions[0].prover_id == "leaving"
    assert not any(x.failures for x in partitions)
    assert cluster.view("leaving").failed == 0


def test_an_idle_prover_told_to_stop_exits_0_and_leaves_no_trace_of_its_address(
    cluster: Cluster,
) -> None:
    start(cluster)
    prover = cluster.prover("a")
    cluster.until_offered("product", "a")
    assert prover.terminate() == 0
    assert not (cluster.data_dir / "run" / "a.json").exists()
    eventually(lambda: not cluster.view("a").connected, "the scheduler knows")


def test_an_idle_scheduler_told_to_stop_exits_0_and_removes_its_addresses(
    cluster: Cluster,
) -> None:
    scheduler = start(cluster)
    assert scheduler.terminate() == 0
    assert not (cluster.data_dir / "run" / "scheduler.json").exists()


def test_a_second_scheduler_of_a_data_directory_is_refused_and_the_first_goes_on(
    cluster: Cluster,
) -> None:
    start(cluster)
    second = cluster.launch_scheduler(listen="127.0.0.1:0", prover_listen="127.0.0.1:0")
    assert second.wait() == 2
    assert str(cluster.data_dir) in second.text
    cluster.prover("a")
    assert len(cluster.completed(cluster.submit([0]))) == 1


def test_a_stopped_prover_is_unresponsive_gets_nothing_new_and_goes_on_where_it_was(
    cluster: Cluster,
) -> None:
    start(cluster, beat="100ms", unresponsive="700ms")
    gate = cluster.gate()
    frozen = cluster.prover("frozen", Fault(gate=str(gate.path)), max_leases=1)
    cluster.until_offered("product", "frozen")
    held = cluster.submit([0])
    cluster.until_at_gate("frozen")
    frozen.signal(signal.SIGSTOP)
    eventually(lambda: "unresponsive" in cluster.view("frozen").reason, "the fleet says so")
    other = cluster.submit([1, 2], priority="critical")
    cluster.prover("awake")
    assert {x.prover_id for x in cluster.completed(other)} == {"awake"}
    # Nothing was queued again: the frozen one still has the right to its partition.
    partition = cluster.client.get(held).partitions[0]
    assert (partition.prover_id, partition.attempt) == ("frozen", 1)
    frozen.signal(signal.SIGCONT)
    gate.open()
    proved = cluster.completed(held)[0]
    assert (proved.prover_id, proved.attempt) == ("frozen", 1)
    eventually(lambda: not cluster.view("frozen").reason, "the fleet says that all is well")
