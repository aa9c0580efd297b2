"""Bad input through the whole system: a clear error in bounded time, and everything goes on.

One cluster serves all tests of this file. After each, the same two prover processes must be
connected and prove a good job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.v1 import proving_pb2, proving_pb2_grpc, types_pb2
from partita_client import BlobMissingError, InvalidRequestError, PartitaError, content_of
from partita_client.errors import error_of
from tests.system.cluster import EDGE, HOSTILE, Cluster, cluster_in, product_input

PRODUCT = EDGE / "one-constraint-bn254"
POWER = EDGE / "power-of-two-bn254"
SHAPES = EDGE / "shapes-bn254"
PROGRAM_LIMIT_MS = 1500


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two provers with circuits of all kinds."""
    with cluster_in(tmp_path_factory.mktemp("bad-input")) as made:
        made.add("product", PRODUCT)
        made.add("power", POWER)
        made.add("shapes", SHAPES)
        made.add("shapes-without-sym", SHAPES, without=("sym",))
        made.add("assertion", EDGE / "assertion-bn254")
        made.add("recursion", EDGE / "recursion-bn254")
        made.add("collatz", EDGE / "collatz-bn254", time_ms=PROGRAM_LIMIT_MS)
        grows = {"wasm": HOSTILE / "grows.wasm"}
        made.add("grows", PRODUCT, without=("sym",), instead=grows, time_ms=PROGRAM_LIMIT_MS)
        made.scheduler()
        for name in ("a", "b"):
            made.prover(name)
        for circuit in ("product", "shapes", "collatz", "grows"):
            made.until_offered(circuit, "a", "b")
        yield made


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """The cluster of this file, and afterwards the proof that it is unharmed."""
    before = instances(running)
    yield running
    assert instances(running) == before
    assert all(process.running for process in running.processes)
    assert running.completed(running.submit([7], request_id=""))[0].failures == []


def instances(cluster: Cluster) -> dict[str, str]:
    return {
        name: view.hello.instance_id for name, view in cluster.provers().items() if view.connected
    }


def failure_of(cluster: Cluster, circuit_id: str, content: Any, input_format: str) -> str:
    """The detail of the INVALID_INPUT that ends a job at once, on its first prover."""
    submitted = cluster.client.submit(circuit_id, [content], input_format)
    job = cluster.client.wait(submitted.job.job_id, 60)
    assert job.state == proving_pb2.JOB_STATE_FAILED, job
    assert job.failure.kind == types_pb2.FAILURE_KIND_INVALID_INPUT, job.failure
    assert [x.kind for x in job.partitions[0].failures] == [types_pb2.FAILURE_KIND_INVALID_INPUT]
    return f"{job.failure.reason}: {job.failure.detail}"


def refused(cluster: Cluster, circuit_id: str, content: Any, input_format: str) -> PartitaError:
    """The error of a submission that is refused."""
    with pytest.raises(InvalidRequestError) as caught:
        cluster.client.submit(circuit_id, [content], input_format)
    return caught.value


# Witnesses


def test_a_witness_that_breaks_the_circuit_is_invalid_at_once_and_its_first_bad_row_is_named(
    cluster: Cluster,
) -> None:
    facts = json.loads((EDGE.parent / "vectors.json").read_text())
    row = facts["tests/vectors/edge/power-of-two-bn254"]["unsatisfied_first_bad_row"]
    said = failure_of(cluster, "power", POWER / "unsatisfied.wtns", "wtns")
    assert said.startswith("UNSATISFIED")
    assert f"row {row}" in said or f"constraint {row}" in said


def test_a_witness_of_another_circuit_is_refused_with_both_numbers(cluster: Cluster) -> None:
    error = refused(cluster, "power", PRODUCT / "witness.wtns", "wtns")
    assert error.code == "INVALID_ARGUMENT"
    assert "partitions[0]" in error.message
    assert "number of wires" in error.message
    larger = refused(cluster, "product", POWER / "witness.wtns", "wtns")
    assert "partitions[0]: the input has 2124 bytes: product takes at most 204" in larger.message


def test_a_witness_on_another_curve_is_refused_with_both_names(cluster: Cluster) -> None:
    other = EDGE / "one-constraint-bls12-381" / "witness.wtns"
    error = refused(cluster, "product", other, "wtns")
    assert "bn254" in error.message
    assert "bls12-381" in error.message


def test_a_witness_of_another_circuit_with_as_many_wires_is_told_the_row(
    cluster: Cluster,
) -> None:
    other = (EDGE / "no-public-bn254" / "witness.wtns").read_bytes()
    said = failure_of(cluster, "product", other, "wtns")
    assert said.startswith("UNSATISFIED")


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def test_a_witness_with_a_flipped_bit_in_a_value_is_told_the_row(cluster: Cluster) -> None:
    data = (PRODUCT / "witness.wtns").read_bytes()
    said = failure_of(cluster, "product", flipped(data, len(data) - 32), "wtns")
    assert said.startswith("UNSATISFIED")
    assert "row 0 of 1" in said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:-1], id="truncated"),
        pytest.param(lambda data: data[:20], id="cut to its head"),
        pytest.param(lambda data: data + b"\0", id="extended"),
        pytest.param(lambda data: b"x" + data[1:], id="wrong magic"),
        pytest.param(lambda data: flipped(data, 30), id="a bit of the prime flipped"),
        pytest.param(lambda data: b"", id="empty"),
    ],
)
def test_a_damaged_witness_is_refused_before_it_is_queued(cluster: Cluster, change: Any) -> None:
    damaged = change((PRODUCT / "witness.wtns").read_bytes())
    error = refused(cluster, "product", damaged, "wtns")
    assert error.code == "INVALID_ARGUMENT"
    assert "partitions[0]" in error.message


def test_a_witness_with_a_value_above_the_modulus_ends_its_job_and_names_the_wire(
    cluster: Cluster,
) -> None:
    damaged = (PRODUCT / "witness.wtns").read_bytes()[:-32] + b"\xff" * 32
    said = failure_of(cluster, "product", damaged, "wtns")
    assert said.startswith("MALFORMED_INPUT")
    assert "wire 3 is not below the modulus of bn254" in said


# Inputs by name


def shapes_input(**changed: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((SHAPES / "input.json").read_text())
    return {name: x for name, x in {**value, **changed}.items() if x is not None}


def test_a_missing_input_is_named(cluster: Cluster) -> None:
    said = failure_of(cluster, "shapes", shapes_input(table=None), "circom.json")
    assert said.startswith("CIRCUIT_INPUT")
    assert "table" in said


def test_without_a_sym_file_a_missing_input_is_counted_and_the_given_ones_are_named(
    cluster: Cluster,
) -> None:
    said = failure_of(cluster, "shapes-without-sym", shapes_input(table=None), "circom.json")
    assert said.startswith("CIRCUIT_INPUT")
    assert "6" in said
    assert "scalar" in said
    assert "row" in said


def test_an_unknown_input_is_named(cluster: Cluster) -> None:
    said = failure_of(cluster, "shapes", shapes_input(colour="3"), "circom.json")
    assert "colour" in said


def test_an_input_of_the_wrong_shape_is_named_with_what_it_needs(cluster: Cluster) -> None:
    said = failure_of(cluster, "shapes", shapes_input(row=["1", "2"]), "circom.json")
    assert "row" in said
    assert "3" in said


@pytest.mark.parametrize("value", ["twelve", "1.5", None, {"deep": "1"}])
def test_an_input_that_is_no_number_is_named(cluster: Cluster, value: Any) -> None:
    content = json.dumps({"left": value, "right": "2"}).encode()
    said = failure_of(cluster, "product", content, "circom.json")
    assert "left" in said


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"left": 1, "left": 2}', b"\xff\xfe"])
def test_an_input_that_is_no_object_is_malformed(cluster: Cluster, content: bytes) -> None:
    said = failure_of(cluster, "product", content, "circom.json")
    assert "input" in said


def test_a_failing_assert_carries_the_circuits_own_message(cluster: Cluster) -> None:
    young = EDGE / "assertion-bn254" / "young.json"
    said = failure_of(cluster, "assertion", young, "circom.json")
    assert said.startswith("CIRCUIT_ASSERT")
    assert "age must be above 18" in said
    assert "Adult" in said


# Witness programs


def test_a_program_that_loops_for_ever_is_stopped_at_its_limit(cluster: Cluster) -> None:
    endless = EDGE / "collatz-bn254" / "endless.json"
    said = failure_of(cluster, "collatz", endless, "circom.json")
    assert said.startswith("WITNESS_PROGRAM")
    assert "1.5" in said or str(PROGRAM_LIMIT_MS) in said


def test_a_program_that_grows_without_end_is_stopped_at_its_limit(cluster: Cluster) -> None:
    said = failure_of(cluster, "grows", product_input(1), "circom.json")
    assert said.startswith("WITNESS_PROGRAM")


def test_a_program_that_recurses_past_its_memory_is_an_invalid_input(cluster: Cluster) -> None:
    deep = EDGE / "recursion-bn254" / "deep.json"
    said = failure_of(cluster, "recursion", deep, "circom.json")
    assert said.startswith("WITNESS_PROGRAM")


# Submissions


def test_a_job_has_1_to_1024_partitions(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequestError, match="0 partitions: a job has 1 to 1024"):
        cluster.client.submit("product", [], "circom.json")
    with pytest.raises(InvalidRequestError, match="1025 partitions: a job has 1 to 1024"):
        cluster.client.submit("product", [product_input(1)] * 1025, "circom.json")


def test_a_statement_of_the_wrong_length_is_refused_with_the_right_one(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequestError, match="31 bytes: product has 1 public") as caught:
        cluster.client.submit("product", [product_input(1)], "circom.json", statements=[b"1" * 31])
    assert caught.value.reason == "STATEMENT_LENGTH"
    with pytest.raises(InvalidRequestError, match="statement"):
        cluster.client.submit(
            "product", [product_input(1)], "circom.json", statements=[b"\xff" * 32]
        )


def test_an_unknown_circuit_and_an_unknown_format_are_named(cluster: Cluster) -> None:
    with pytest.raises(PartitaError, match="prodduct") as caught:
        cluster.client.submit("prodduct", [product_input(1)], "circom.json")
    assert caught.value.reason == "UNKNOWN_CIRCUIT"
    with pytest.raises(InvalidRequestError, match=r"takes circom\.json, wtns") as refusal:
        cluster.client.submit("product", [product_input(1)], "json")
    assert refusal.value.reason == "UNKNOWN_FORMAT"


def test_a_request_id_of_10_kb_is_refused_with_the_limit(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequestError, match="10000 bytes: at most 256"):
        cluster.submit([1], request_id="x" * 10_000)


def test_an_input_larger_than_the_circuit_takes_is_refused(cluster: Cluster) -> None:
    padded = b" " * (1 << 20) + b"{}"
    error = refused(cluster, "product", padded, "circom.json")
    assert "at most" in error.message


def test_a_blob_that_nobody_uploaded_is_named(cluster: Cluster) -> None:

    ref = content_of(b"never sent").ref
    partition = proving_pb2.PartitionInput(blob=ref)
    request = proving_pb2.SubmitJobRequest(
        circuit_id="product", input_format="circom.json", partitions=[partition]
    )
    with grpc.insecure_channel(cluster.address) as channel, pytest.raises(grpc.RpcError) as caught:
        proving_pb2_grpc.ProvingServiceStub(channel).SubmitJob(request, timeout=60)
    error = error_of(caught.value, cluster.address)
    assert isinstance(error, BlobMissingError)
    assert ref.sha256.hex() in str(error.metadata)


def test_the_command_line_names_the_file_and_exits_2_or_1(cluster: Cluster) -> None:
    wrong = cluster.root / "wrong.json"
    wrong.write_text("[1]")
    refusal = cluster.command("submit", "product", "--input", wrong, "--wait")
    assert refusal.returncode == 2
    assert str(wrong) in refusal.stderr
    young = EDGE / "assertion-bn254" / "young.json"
    failed = cluster.command("submit", "assertion", "--input", young, "--wait")
    assert failed.returncode == 1
    assert "age must be above 18" in failed.stderr
    absent = cluster.command("submit", "nothing", "--input", young)
    assert absent.returncode == 2
    assert "nothing" in absent.stderr


@pytest.mark.parametrize(
    ("role", "file"),
    [("zkey", HOSTILE / "plonk.zkey"), ("zkey", HOSTILE / "fflonk.zkey")],
    ids=["plonk", "fflonk"],
)
def test_a_key_of_another_protocol_is_not_added_and_disturbs_nobody(
    cluster: Cluster, role: str, file: Path
) -> None:
    added = cluster.command("circuits", "add", "other", f"--{role}", file)
    assert added.returncode == 2
    assert file.name.split(".")[0] in added.stderr.lower()
    assert "other" not in {circuit.circuit_id for circuit in cluster.client.circuits()}
