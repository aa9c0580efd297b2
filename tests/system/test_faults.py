"""Provers that break: typed failures, the job ends well on another one, the fleet says why."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from partita.circuits.catalogue import Entry
from partita.v1 import fleet_pb2, proving_pb2, types_pb2
from tests.system.cluster import EDGE, Cluster, eventually, product_input, product_statement
from tests.system.faulty_prover import Fault


def failures_of(cluster: Cluster, job_id: str) -> list[types_pb2.Failure]:
    return [x for part in cluster.client.get(job_id).partitions for x in part.failures]


def connected_view(cluster: Cluster, prover_id: str) -> fleet_pb2.ProverView:
    view = cluster.view(prover_id)
    assert view.connected
    return view


def test_a_native_panic_is_a_typed_failure_and_the_other_prover_does_the_work(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    cluster.prover("bad", Fault(panics=1))
    cluster.until_offered("product", "bad")
    job_id = cluster.submit([0], priority="high")
    eventually(lambda: failures_of(cluster, job_id), "the failure")
    cluster.prover("good")
    partition = cluster.completed(job_id)[0]
    failure = partition.failures[0]
    assert failure.kind == types_pb2.FAILURE_KIND_COMPUTE
    assert failure.reason == "BACKEND_FAILED"
    assert "a fault of this test" in failure.detail
    assert failure.prover_id == "bad"
    view = connected_view(cluster, "bad")
    assert view.failed >= 1
    assert "a fault of this test" in view.reason


def test_a_backend_that_only_panics_ends_its_prover_and_the_job_ends_well_elsewhere(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    bad = cluster.prover("bad", Fault(panics=1000), fault_grace="500ms")
    cluster.prover("good")
    cluster.until_offered("product", "bad", "good")
    partitions = cluster.completed(cluster.submit(range(12)))
    assert {x.prover_id for x in partitions} == {"good"}
    assert bad.wait() == 70
    failed = [failure for part in partitions for failure in part.failures]
    assert failed
    assert {failure.kind for failure in failed} == {types_pb2.FAILURE_KIND_COMPUTE}
    eventually(lambda: not cluster.view("bad").connected, "the scheduler knows")
    view = cluster.view("bad")
    assert "a fault of this test" in view.reason


def test_a_prover_whose_proofs_do_not_verify_is_debited_and_nothing_unverified_comes_back(
    cluster: Cluster,
) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    # Alone it is tried again and again; its third debit would quarantine it, for another reason.
    cluster.scheduler(quarantine_debits=10)
    cluster.prover("bad", Fault(wrong=True))
    cluster.until_offered("product", "bad")
    job_id = cluster.submit([0])
    eventually(lambda: failures_of(cluster, job_id), "the failure")
    assert cluster.client.partitions(job_id)[0].proof == b""
    cluster.prover("good")
    partition = cluster.completed(job_id)[0]
    assert partition.prover_id == "good"
    assert partition.statement == product_statement(0)
    failure = partition.failures[0]
    assert failure.kind == types_pb2.FAILURE_KIND_UNVERIFIED
    assert failure.prover_id == "bad"
    view = connected_view(cluster, "bad")
    assert view.debits >= 1
    assert "UNVERIFIED" in view.reason


def own_copy(cluster: Cluster, entry: Entry) -> tuple[Path, Path]:
    """A data directory of a prover that has the proving key already; and that key's file."""
    data_dir = cluster.root / "own"
    files = data_dir / "circuits" / ".files"
    files.mkdir(parents=True)
    key = files / entry.manifest.files["zkey"]
    shutil.copyfile(entry.file("zkey"), key)
    return data_dir, key


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


def test_a_key_that_was_corrupt_before_it_was_offered_is_not_offered_and_says_why(
    cluster: Cluster,
) -> None:
    data_dir, key = own_copy(cluster, cluster.add("product", EDGE / "one-constraint-bn254"))
    flip(key)
    cluster.scheduler()
    cluster.prover("bad", data_dir=data_dir)

    def shown() -> str:
        return "".join(x.unusable_reason for x in cluster.view("bad").hello.offers)

    assert "altered" in eventually(shown, "the offer with its reason")
    assert "zkey" in shown()
    cluster.prover("good")
    assert {x.prover_id for x in cluster.completed(cluster.submit(range(4)))} == {"good"}


def test_a_key_that_becomes_corrupt_before_it_is_loaded_fails_there_and_the_job_goes_elsewhere(
    cluster: Cluster,
) -> None:
    data_dir, key = own_copy(cluster, cluster.add("product", EDGE / "one-constraint-bn254"))
    cluster.scheduler()
    cluster.prover("bad", data_dir=data_dir)
    cluster.until_offered("product", "bad")
    flip(key)
    job_id = cluster.submit(range(4))

    reason = eventually(lambda: cluster.view("bad").reason, "the fleet says why")
    assert "key failed" in reason
    assert "altered" in reason
    cluster.prover("good")
    partitions = cluster.completed(job_id)
    assert {x.prover_id for x in partitions} == {"good"}
    assert connected_view(cluster, "bad").reason == reason


def test_a_witness_that_does_not_fit_is_tried_on_two_provers_and_then_the_input_is_to_blame(
    cluster: Cluster,
) -> None:
    cluster.add("bare", EDGE / "power-of-two-bn254", without=("r1cs", "wasm", "sym"))
    cluster.scheduler()
    for name in ("a", "b"):
        cluster.prover(name)
    cluster.until_offered("bare", "a", "b")
    folder = EDGE / "power-of-two-bn254"
    job = cluster.client.submit("bare", [folder / "unsatisfied.wtns"], "wtns").job
    ended = cluster.client.wait(job.job_id, 60)
    assert ended.state == proving_pb2.JOB_STATE_FAILED
    assert ended.failure.reason == "POISONED"
    assert "witness or key does not fit; add --r1cs to see where" in ended.failure.detail
    failures = ended.partitions[0].failures
    assert {x.kind for x in failures} == {types_pb2.FAILURE_KIND_UNVERIFIED}
    assert {x.prover_id for x in failures} == {"a", "b"}
    # Poisoned everywhere: the debits are void, and both provers go on.
    assert [view.debits for view in cluster.provers().values()] == [0, 0]
    good = cluster.client.submit("bare", [folder / "witness.wtns"], "wtns").job
    cluster.completed(good.job_id, "bare")


def test_where_rows_are_not_always_checked_the_second_try_names_the_row(cluster: Cluster) -> None:
    cluster.add("power", EDGE / "power-of-two-bn254")
    cluster.scheduler()
    for name in ("a", "b"):
        cluster.prover(name, check_rows_below=0)
    cluster.until_offered("power", "a", "b")
    witness = EDGE / "power-of-two-bn254" / "unsatisfied.wtns"
    job = cluster.client.submit("power", [witness], "wtns").job
    ended = cluster.client.wait(job.job_id, 60)
    assert ended.failure.reason == "UNSATISFIED"
    assert [x.kind for x in ended.partitions[0].failures] == [
        types_pb2.FAILURE_KIND_UNVERIFIED,
        types_pb2.FAILURE_KIND_INVALID_INPUT,
    ]
    assert len(cluster.begun()) == 1


def test_an_input_that_the_scheduler_has_lost_ends_its_job_and_is_named(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    too_large_to_be_inline = json.dumps(product_input(0)).encode() + b" " * (1 << 16)
    submitted = cluster.client.submit("product", [too_large_to_be_inline], "circom.json")
    digest = hashlib.sha256(too_large_to_be_inline).hexdigest()
    (cluster.data_dir / "blobs" / digest).unlink()
    cluster.prover("a")
    ended = cluster.client.wait(submitted.job.job_id, 60)
    assert ended.state == proving_pb2.JOB_STATE_FAILED
    assert ended.failure.kind == types_pb2.FAILURE_KIND_INPUT_LOST
    assert digest in ended.failure.detail
    assert connected_view(cluster, "a").failed == 0, "it is not the prover's fault"
    cluster.completed(cluster.submit([1]))
