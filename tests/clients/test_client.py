"""The rules that the blocking and the asyncio client share, each tried with both."""

import asyncio
import datetime as dt
import hashlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.service.grpcio import RpcError
from partita.v1 import fleet_pb2, proving_pb2, types_pb2
from partita_client import (
    AsyncClient,
    BlobMissingError,
    Client,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    OverloadedError,
    RetryPolicy,
    UnavailableError,
    WaitTimeoutError,
    state_name,
)
from tests.clients.peer import Peer, serve, unavailable

QUICK = RetryPolicy(give_up_after_s=20, first_s=0.001, most_s=0.05)
LARGE = bytes(range(256)) * 9000  # three chunks
Connect = Callable[..., Any]


class _InThreads:
    """The blocking client with the asyncio client's face."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(method, *args, **kwargs)

        async def each(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            rows = method(*args, **kwargs)
            while (row := await asyncio.to_thread(next, rows, None)) is not None:
                yield row

        return each if name in ("jobs", "watch", "watch_fleet") else call


@pytest.fixture(params=["blocking", "asyncio"])
async def connect(request: pytest.FixtureRequest) -> AsyncGenerator[Connect, None]:
    opened: list[Client | AsyncClient] = []

    def make(address: str, retry: RetryPolicy = QUICK) -> Any:
        if request.param == "blocking":
            blocking = Client(address, retry=retry)
            opened.append(blocking)
            return _InThreads(blocking)
        client = AsyncClient(address, retry=retry)
        opened.append(client)
        return client

    yield make
    for client in opened:
        if isinstance(client, AsyncClient):
            await client.close()
        else:
            client.close()


@pytest.fixture
async def peer() -> Peer:
    return Peer()


async def test_a_small_input_travels_inside_the_submission(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        answer = await connect(address).submit("merkle", [b"{}"], "circom.json", priority="high")
    assert peer.submissions[0].partitions[0].inline == b"{}"
    assert peer.submissions[0].priority == types_pb2.PRIORITY_HIGH
    assert peer.calls["FindMissing"] == 0
    assert not answer.attached


async def test_values_by_name_are_sent_as_json_without_loss(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        await connect(address).submit("c", [{"a": 2**200, "b": ["1", -1]}], "circom.json")
    assert peer.submissions[0].partitions[0].inline == b'{"a":%d,"b":["1",-1]}' % 2**200


async def test_a_large_input_is_uploaded_once_however_many_partitions_have_it(
    connect: Connect, peer: Peer, tmp_path: Path
) -> None:
    path = tmp_path / "w.wtns"
    path.write_bytes(LARGE)
    seen = []
    async with serve(peer) as address:
        client = connect(address)
        await client.submit(
            "c",
            [path, LARGE, path],
            "wtns",
            progress=lambda done, total: seen.append((done, total)),
        )
        await client.submit("c", [path], "wtns")
    assert peer.blobs == {hashlib.sha256(LARGE).digest(): LARGE}
    assert peer.calls["Upload"] == 1
    assert peer.submissions[0].partitions[2].blob.size_bytes == len(LARGE)
    assert seen[-1] == (len(LARGE), len(LARGE))


async def test_small_inputs_beyond_one_request_are_uploaded(connect: Connect, peer: Peer) -> None:
    inputs = [bytes([i]) * (60 << 10) for i in range(80)]
    async with serve(peer) as address:
        await connect(address).submit("c", inputs, "wtns")
    request = peer.submissions[0]
    assert request.ByteSize() < 4 << 20
    assert [p.inline or peer.blobs[p.blob.sha256] for p in request.partitions] == inputs


async def test_a_request_beyond_four_mebibytes_is_refused_before_it_is_sent(
    connect: Connect, peer: Peer
) -> None:
    async with serve(peer) as address:
        with pytest.raises(InvalidRequestError, match=r"statements: .*submit fewer partitions"):
            await connect(address).submit("c", [b"x"], "circom.json", statements=[bytes(5 << 20)])
    assert peer.calls["SubmitJob"] == 0


async def test_inputs_dropped_between_upload_and_submission_are_sent_once_more(
    connect: Connect, peer: Peer
) -> None:
    refusal = RpcError(grpc.StatusCode.FAILED_PRECONDITION, "BLOB_MISSING", "input lost")
    async with serve(peer) as address:
        client = connect(address)
        peer.failures["SubmitJob"] = [refusal]
        await client.submit("c", [LARGE], "wtns")
        assert peer.calls["FindMissing"] == 2
        peer.failures["SubmitJob"] = [refusal, refusal]
        with pytest.raises(BlobMissingError):
            await client.submit("c", [LARGE], "wtns")


async def test_a_retried_submission_keeps_its_request_id(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        peer.failures["SubmitJob"] = [unavailable(), unavailable()]
        first = await client.submit("c", [b"1"], "circom.json")
        second = await client.submit("c", [b"1"], "circom.json")
        named = await client.submit("c", [b"1"], "circom.json", request_id="mine")
        again = await client.submit("c", [b"1"], "circom.json", request_id="mine")
    assert peer.calls["SubmitJob"] == 6
    assert first.job.request_id
    assert first.job.request_id != second.job.request_id
    assert again.attached
    assert again.job.job_id == named.job.job_id


async def test_the_servers_retry_delay_is_obeyed(connect: Connect, peer: Peer) -> None:
    full = RpcError(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", "full", retry_after_ns=300_000_000
    )
    async with serve(peer) as address:
        client = connect(address)
        peer.failures["SubmitJob"] = [full]
        start_s = asyncio.get_running_loop().time()
        await client.submit("c", [b"1"], "circom.json")
        assert asyncio.get_running_loop().time() - start_s >= 0.3

        impatient = connect(address, RetryPolicy(give_up_after_s=0.1))
        peer.failures["SubmitJob"] = [full]
        with pytest.raises(OverloadedError) as caught:
            await impatient.submit("c", [b"1"], "circom.json")
    assert caught.value.retry_after_s == 0.3


async def test_an_error_carries_reason_fields_and_metadata_and_is_not_retried(
    connect: Connect, peer: Peer
) -> None:
    async with serve(peer) as address:
        client = connect(address)
        peer.failures["SubmitJob"] = [
            RpcError(
                grpc.StatusCode.INVALID_ARGUMENT,
                "STATEMENT_LENGTH",
                "partitions[0].statement: 31 bytes",
                metadata={"expected": "32"},
                fields={"partitions[0].statement": "31 bytes; give 32"},
            )
        ]
        with pytest.raises(InvalidRequestError) as caught:
            await client.submit("c", [b"1"], "circom.json", statements=[bytes(31)])
        with pytest.raises(NotFoundError) as unknown:
            await client.get("job-9")
    error = caught.value
    assert (error.code, error.reason) == ("INVALID_ARGUMENT", "STATEMENT_LENGTH")
    assert error.fields == {"partitions[0].statement": "31 bytes; give 32"}
    assert error.metadata == {"expected": "32"}
    assert str(error) == "partitions[0].statement: 31 bytes"
    assert unknown.value.reason == "JOB_UNKNOWN"
    assert peer.calls["SubmitJob"] == 1


async def test_a_file_that_cannot_be_read_is_named(
    connect: Connect, peer: Peer, tmp_path: Path
) -> None:
    async with serve(peer) as address:
        with pytest.raises(InvalidRequestError, match=r"gone\.json: cannot be read"):
            await connect(address).submit("c", [tmp_path / "gone.json"], "circom.json")


async def test_wrong_arguments_are_named_before_anything_is_sent(
    connect: Connect, peer: Peer
) -> None:
    async with serve(peer) as address:
        client = connect(address)
        with pytest.raises(InvalidRequestError, match="priority: 'urgent'"):
            await client.submit("c", [b"1"], "wtns", priority="urgent")
        with pytest.raises(InvalidRequestError, match="statements: 2 for 1 inputs"):
            await client.submit("c", [b"1"], "wtns", statements=[None, None])
        with pytest.raises(InvalidRequestError, match=r"deadline: .* no time zone"):
            await client.submit("c", [b"1"], "wtns", deadline=dt.datetime(2030, 1, 1))
        with pytest.raises(InvalidRequestError, match="states: 'done'"):
            [job async for job in client.jobs(states=["done"])]
    assert not peer.calls


async def test_nobody_at_the_address_is_unavailable_and_names_it(connect: Connect) -> None:
    client = connect("127.0.0.1:1", RetryPolicy(give_up_after_s=0))
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
        await client.server_info()


async def test_a_wait_is_armed_again_until_the_job_ends(
    connect: Connect, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_client.flows._POLL_S", 0.01)
    async with serve(peer) as address:
        client = connect(address)
        job_id = (await client.submit("c", [b"1"], "wtns")).job.job_id
        waiting = asyncio.create_task(client.wait(job_id))
        await peer.called("GetJob", 3)
        peer.end_job(job_id)
        assert state_name(await waiting) == "completed"


async def test_a_wait_survives_a_restart_of_the_scheduler(
    connect: Connect, peer: Peer, tmp_path: Path
) -> None:
    address = f"unix://{tmp_path}/s.sock"
    client = connect(address)
    async with serve(peer, address):
        job_id = (await client.submit("c", [b"1"], "wtns")).job.job_id
        waiting = asyncio.create_task(client.wait(job_id))
        await peer.called("GetJob")
    peer.end_job(job_id)
    async with serve(peer, address):
        assert state_name(await waiting) == "completed"
    assert peer.calls["GetJob"] >= 2


async def test_a_wait_that_is_over_says_so_and_leaves_the_job(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        job_id = (await client.submit("c", [b"1"], "wtns")).job.job_id
        with pytest.raises(WaitTimeoutError, match="it goes on") as caught:
            await client.wait(job_id, timeout_s=0.05)
    assert caught.value.job is not None
    assert caught.value.job.job_id == job_id
    assert isinstance(caught.value, TimeoutError)


async def test_a_watch_resumes_after_its_stream_breaks_and_ends_with_the_terminal_snapshot(
    connect: Connect, peer: Peer
) -> None:
    async with serve(peer) as address:
        client = connect(address)
        job_id = (await client.submit("c", [b"1"], "wtns")).job.job_id
        peer.stream_cut_after = 1
        states = []
        async for job in client.watch(job_id):
            states.append(state_name(job))
            if len(states) == 2:
                peer.end_job(job_id)
    assert states == ["queued", "queued", "completed"]
    assert peer.calls["WatchJob"] >= 2


async def test_partitions_come_in_order_from_all_pages(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        job_id = (await client.submit("c", [b"1"] * 5, "wtns")).job.job_id
        peer.results[job_id] = [proving_pb2.Partition(index=i, proof=bytes([i])) for i in range(5)]
        rows = await client.partitions(job_id)
    assert [row.proof for row in rows] == [bytes([i]) for i in range(5)]


async def test_jobs_come_from_all_pages_and_cancel_ends_one(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        ids = [(await client.submit("c", [b"1"], "wtns")).job.job_id for _ in range(5)]
        assert [job.job_id async for job in client.jobs()] == ids
        assert state_name(await client.cancel(ids[3], "mistake")) == "cancelled"
        assert [job.job_id async for job in client.jobs(states=["cancelled"])] == [ids[3]]


async def test_a_retry_returns_the_new_job_and_says_why_it_cannot(
    connect: Connect, peer: Peer
) -> None:
    async with serve(peer) as address:
        client = connect(address)
        job_id = (await client.submit("c", [b"1"], "wtns")).job.job_id
        with pytest.raises(InvalidRequestError) as refusal:
            await client.retry(job_id)
        assert refusal.value.reason == "NOT_RETRYABLE"
        await client.cancel(job_id)
        peer.failures["RetryJob"] = [unavailable()]
        new = await client.retry(job_id)
        assert (new.job_id, state_name(new)) == (f"{job_id}-again", "queued")


async def test_steering_a_prover_sets_what_is_given_and_leaves_the_rest(
    connect: Connect, peer: Peer
) -> None:
    view = peer.fleet.provers.add(mode=fleet_pb2.MODE_ACTIVE, trust=fleet_pb2.TRUST_TRUSTED)
    view.hello.prover_id = "gpu-0"
    async with serve(peer) as address:
        client = connect(address)
        view = await client.set_prover_mode("gpu-0", mode="cordoned", reason="repair")
        assert (view.mode, view.trust) == (fleet_pb2.MODE_CORDONED, fleet_pb2.TRUST_TRUSTED)
        assert view.reason == "repair"
        view = await client.set_prover_mode("gpu-0", trust="quarantined")
        assert (view.mode, view.trust) == (fleet_pb2.MODE_CORDONED, fleet_pb2.TRUST_QUARANTINED)
        with pytest.raises(NotFoundError):
            await client.set_prover_mode("nobody", mode="active")
        with pytest.raises(InvalidRequestError, match="mode: 'off' is not one of active"):
            await client.set_prover_mode("gpu-0", mode="off")


async def test_a_residency_names_circuit_prover_and_wish(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        changed = await connect(address).set_residency("c", "pinned", prover_id="gpu-0")
    assert changed.host == 7
    (request,) = peer.residencies
    assert (request.circuit_id, request.prover_id) == ("c", "gpu-0")
    assert request.residency == fleet_pb2.RESIDENCY_PINNED


async def test_prove_raises_the_jobs_own_failure(connect: Connect, peer: Peer) -> None:
    failure = types_pb2.Failure(
        kind=types_pb2.FAILURE_KIND_INVALID_INPUT, reason="BAD_INPUT", detail="signal x is missing"
    )
    async with serve(peer) as address:
        proving = asyncio.create_task(connect(address).prove("c", [b"1"], "wtns"))
        await peer.called("GetJob")
        peer.end_job("job-0", proving_pb2.JOB_STATE_FAILED, failure)
        with pytest.raises(JobFailedError, match="BAD_INPUT: signal x is missing") as caught:
            await proving
    assert state_name(caught.value.job) == "failed"


async def test_the_fleet_is_one_snapshot_or_a_stream(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        assert (await client.fleet()).epoch == 1
        snapshots = client.watch_fleet()
        assert (await anext(snapshots)).epoch == 1
        await snapshots.aclose()


async def test_a_circuit_is_added_with_its_files(
    connect: Connect, peer: Peer, tmp_path: Path
) -> None:
    (tmp_path / "c.zkey").write_bytes(LARGE)
    async with serve(peer) as address:
        client = connect(address)
        added = await client.add_circuit("c", "{}", [tmp_path / "c.zkey"])
        assert [one.circuit_id for one in await client.circuits()] == [added.circuit_id]
    assert list(peer.blobs.values()) == [LARGE]


async def test_a_blob_that_the_server_has_is_not_sent_again(connect: Connect, peer: Peer) -> None:
    async with serve(peer) as address:
        client = connect(address)
        content = await client.upload(LARGE)
        assert content.sha256 == hashlib.sha256(LARGE).digest()
        peer.failures["Upload"] = [unavailable()]
        await client.upload(b"other")
        await client.upload(LARGE)
    assert peer.calls["Upload"] == 3


async def test_a_server_that_answers_an_upload_early_has_the_blob(
    connect: Connect, peer: Peer
) -> None:
    content = bytes(24 << 20)  # far beyond what the connection buffers
    sha256 = hashlib.sha256(content).digest()
    peer.forgetful = True
    peer.blobs[sha256] = content
    async with serve(peer) as address:
        assert (await connect(address).upload(content)).sha256 == sha256
    assert peer.calls["Upload"] == 1


async def test_an_upload_that_is_refused_early_says_why(connect: Connect, peer: Peer) -> None:
    peer.failures["Upload"] = [
        RpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, "BAD_INPUT", "header.size_bytes: 24 MiB")
    ]
    async with serve(peer) as address:
        with pytest.raises(OverloadedError, match=r"header\.size_bytes: 24 MiB"):
            await connect(address).upload(bytes(24 << 20))


async def test_a_file_that_changes_while_it_is_sent_is_refused_and_not_kept(
    connect: Connect, peer: Peer, tmp_path: Path
) -> None:
    path = tmp_path / "w.wtns"
    path.write_bytes(LARGE)

    def shrink(sent_bytes: int, total_bytes: int) -> None:
        path.write_bytes(b"")

    async with serve(peer) as address:
        client = connect(address)
        with pytest.raises(InvalidRequestError, match="another content"):
            await client.upload(path, progress=shrink)
    assert not peer.blobs
