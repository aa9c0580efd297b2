"""The main job through a real scheduler: submitted, dispatched, proved, verified, returned."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator

import grpc
import pytest

from partita.v1 import dispatch_pb2, fleet_pb2, proving_pb2, types_pb2
from tests.scheduler.peer import Connect, Peer, product_statement, product_wtns
from tests.scheduler.running import Running, blob_ref, refused, request_of, upload

COMPLETED = proving_pb2.JOB_STATE_COMPLETED
CANCELLED = proving_pb2.JOB_STATE_CANCELLED
FAILED = proving_pb2.JOB_STATE_FAILED
NOT_FOUND = grpc.StatusCode.NOT_FOUND


async def watch(service: Running, job_id: str) -> AsyncIterator[proving_pb2.Job]:
    async for message in service.proving.WatchJob(proving_pb2.WatchJobRequest(job_id=job_id)):
        yield message.job


def job_request(left: int, right: int, **fields: object) -> proving_pb2.SubmitJobRequest:
    content = json.dumps({"left": str(left), "right": str(right)}).encode()
    return proving_pb2.SubmitJobRequest(
        circuit_id="product",
        input_format="circom.json",
        partitions=[proving_pb2.PartitionInput(inline=content, **fields)],  # type: ignore[arg-type]
    )


async def test_each_input_comes_back_as_its_own_verified_proof_in_order(
    service: Running, connect: Connect
) -> None:
    await connect()
    pairs = [(3, index + 2) for index in range(10)]
    answer = await service.submit(pairs, request_id="r", labels={"sector": "7"})
    assert not answer.attached
    job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert (job.partitions_done, job.partitions_total, job.labels["sector"]) == (10, 10, "7")
    parts = await service.results(job.job_id)
    assert [part.index for part in parts] == list(range(10))
    assert [part.statement for part in parts] == [product_statement(*pair) for pair in pairs]
    assert all(part.statement_source == proving_pb2.STATEMENT_SOURCE_INPUT for part in parts)
    assert len({part.proof for part in parts}) == 10


async def test_blobs_are_downloaded_by_provers_and_proved(
    service: Running, connect: Connect
) -> None:
    await connect()
    data = product_wtns(6, 7)
    await upload(service.blobs, data)
    answer = await service.proving.SubmitJob(
        request_of([], partitions=[proving_pb2.PartitionInput(blob=blob_ref(data))] * 2)
    )
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    parts = await service.results(answer.job.job_id)
    assert [part.statement for part in parts] == [product_statement(6, 7)] * 2


async def test_a_submitted_statement_is_what_the_proof_is_verified_against(
    service: Running, connect: Connect
) -> None:
    await connect()
    good = await service.proving.SubmitJob(job_request(3, 4, statement=product_statement(3, 4)))
    wrong = await service.proving.SubmitJob(job_request(3, 5, statement=product_statement(3, 6)))
    assert (await service.end_of(good.job.job_id)).state == COMPLETED
    (part,) = await service.results(good.job.job_id)
    assert part.statement_source == proving_pb2.STATEMENT_SOURCE_SUBMITTED
    await asyncio.wait_for(_failed_once(service, wrong.job.job_id), 30)


async def _failed_once(service: Running, job_id: str) -> None:
    async for job in watch(service, job_id):
        if job.partitions[0].failures:
            assert job.partitions[0].failures[0].kind == types_pb2.FAILURE_KIND_UNVERIFIED
            return
    raise AssertionError("the job ended without a failure")


async def test_where_nobody_else_can_the_prover_states_and_the_result_says_so(
    service: Running, connect: Connect
) -> None:
    await connect()
    answer = await service.proving.SubmitJob(job_request(8, 9))
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    (part,) = await service.results(answer.job.job_id)
    assert part.statement_source == proving_pb2.STATEMENT_SOURCE_PROVER
    assert part.statement == product_statement(8, 9)


async def test_a_proof_that_does_not_verify_is_never_returned(
    service: Running, connect: Connect
) -> None:
    other = service.prover.proof

    def swap(lease: dispatch_pb2.Lease, proof: bytes) -> bytes:
        from tests.scheduler.peer import product_witness

        return other(product_witness(1, 1)) if lease.partition_index == 1 else proof

    await connect("bad", spoil=swap)
    answer = await service.submit([(2, 3), (2, 4), (2, 5)])
    await asyncio.wait_for(_unverified(service, answer.job.job_id), 30)
    good = await connect("good")
    job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert [part.attempt for part in job.partitions if part.index != 1] == [1, 1]
    parts = await service.results(job.job_id)
    assert parts[1].prover_id == "good"
    assert {failure.prover_id for failure in parts[1].failures} == {"bad"}
    assert good.proved == [(job.job_id, 1)]
    assert (await service.prover_view("bad")).debits == len(parts[1].failures)


async def _unverified(service: Running, job_id: str) -> None:
    async for job in watch(service, job_id):
        if job.partitions_done == 2 and job.partitions[1].failures:
            return


@pytest.mark.parametrize("spoiled", [b"", b"\x00" * 256, b"\xff" * 256, b"x" * 100])
async def test_bytes_that_are_no_proof_count_as_unverified(
    service: Running, connect: Connect, spoiled: bytes
) -> None:
    await connect("bad", spoil=lambda lease, proof: spoiled)
    answer = await service.submit([(2, 3)])
    await asyncio.wait_for(_failed_once(service, answer.job.job_id), 30)
    await connect("good")
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED


async def test_sixty_four_callers_of_one_submission_make_one_run(
    service: Running, connect: Connect
) -> None:
    peer = await connect(max_leases=8)
    pairs = [(5, index) for index in range(4)]
    answers = await asyncio.gather(*(service.submit(pairs, request_id="same") for _ in range(64)))
    assert len({answer.job.job_id for answer in answers}) == 1
    assert sum(not answer.attached for answer in answers) == 1
    job = await service.end_of(answers[0].job.job_id)
    assert job.state == COMPLETED
    assert sorted(peer.proved) == [(job.job_id, index) for index in range(4)]


async def test_two_jobs_under_one_request_id_each_get_their_own_result(
    service: Running, connect: Connect
) -> None:
    await connect()
    first, second = await asyncio.gather(
        service.submit([(2, 10), (2, 11)], request_id="sector"),
        service.submit([(2, 20), (2, 21)], request_id="sector"),
    )
    assert first.job.job_id != second.job.job_id
    for answer, low in ((first, 10), (second, 20)):
        assert (await service.end_of(answer.job.job_id)).state == COMPLETED
        assert [part.statement for part in await service.results(answer.job.job_id)] == [
            product_statement(2, low),
            product_statement(2, low + 1),
        ]


async def test_an_empty_request_id_is_always_a_new_job(service: Running) -> None:
    first, second = await service.submit([(2, 3)]), await service.submit([(2, 3)])
    assert first.job.job_id != second.job.job_id


async def test_a_kept_result_is_served_although_its_inputs_are_gone(
    service: Running, connect: Connect
) -> None:
    await connect()
    data = product_wtns(4, 4)
    await upload(service.blobs, data)
    request = request_of(
        [], request_id="r", partitions=[proving_pb2.PartitionInput(blob=blob_ref(data))]
    )
    first = await service.proving.SubmitJob(request)
    assert (await service.end_of(first.job.job_id)).state == COMPLETED
    service.scheduler.engine.blobs.path(blob_ref(data).sha256).unlink()
    again = await service.proving.SubmitJob(request)
    assert (again.job.job_id, again.attached) == (first.job.job_id, True)
    assert again.job.state == COMPLETED


async def test_a_missing_blob_is_named_by_its_digest(service: Running) -> None:
    data = product_wtns(4, 5)
    request = request_of([], partitions=[proving_pb2.PartitionInput(blob=blob_ref(data))])
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "BLOB_MISSING") as refusal:
        await service.proving.SubmitJob(request)
    assert refusal.metadata is not None
    assert refusal.metadata["sha256"] == blob_ref(data).sha256.hex()


async def test_of_a_thousand_missing_blobs_the_first_are_named_and_all_are_counted(
    service: Running,
) -> None:
    refs = [blob_ref(b"%d" % index) for index in range(1024)]
    request = request_of([], partitions=[proving_pb2.PartitionInput(blob=ref) for ref in refs])
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "BLOB_MISSING") as refusal:
        await service.proving.SubmitJob(request)
    assert refusal.metadata is not None
    assert refusal.metadata["missing"] == "1024"
    assert refusal.metadata["sha256"].split(",") == [ref.sha256.hex() for ref in refs[:64]]
    assert "FindMissing" in refusal.message


async def test_a_cancelled_job_stops_and_the_same_id_runs_anew(
    service: Running, connect: Connect
) -> None:
    peer: Peer = await connect(max_leases=1)
    peer.work.clear()
    answer = await service.submit([(2, 3), (2, 4)], request_id="r")
    await peer.started.wait()
    job_id = answer.job.job_id
    await service.proving.CancelJob(proving_pb2.CancelJobRequest(job_id=job_id, reason="no"))
    job = await service.end_of(job_id)
    assert job.state == CANCELLED
    assert {part.state for part in job.partitions} == {proving_pb2.PARTITION_STATE_DROPPED}
    peer.work.set()
    again = await service.submit([(2, 3), (2, 4)], request_id="r")
    assert again.job.job_id != job_id
    assert (await service.end_of(again.job.job_id)).state == COMPLETED
    repeat = await service.proving.CancelJob(proving_pb2.CancelJobRequest(job_id=again.job.job_id))
    assert repeat.job.state == COMPLETED, "a terminal job does not change"


async def test_a_deadline_ends_the_job(service: Running) -> None:
    request = request_of([(2, 3)])
    request.deadline.FromNanoseconds(time.time_ns() + 200_000_000)
    answer = await service.proving.SubmitJob(request)
    job = await service.end_of(answer.job.job_id)
    assert (job.state, job.failure.reason) == (FAILED, "DEADLINE_EXCEEDED")


async def test_a_watch_begins_at_once_and_ends_with_the_terminal_snapshot(
    service: Running, connect: Connect
) -> None:
    answer = await service.submit([(2, index) for index in range(5)])
    snapshots = watch(service, answer.job.job_id)
    first = await anext(snapshots)
    assert (first.state, len(first.partitions)) == (proving_pb2.JOB_STATE_QUEUED, 5)
    await connect()
    rest = [job async for job in snapshots]
    assert rest[-1].state == COMPLETED
    done = [job.partitions_done for job in rest]
    assert done == sorted(done)
    assert not any(part.proof or part.statement for job in rest for part in job.partitions)


async def test_a_waiting_job_says_what_is_ahead_and_when_it_should_end(
    service: Running, connect: Connect
) -> None:
    idle = asyncio.Event()
    peer: Peer = await connect(max_leases=1, work=idle)
    idle.clear()
    before_s = time.time()
    first = (await service.submit([(2, 3), (2, 4), (2, 5)])).job.job_id
    second = (await service.submit([(7, 8)])).job.job_id
    await peer.started.wait()
    request = proving_pb2.ListJobsRequest()
    shown = {job.job_id: job for job in (await service.proving.ListJobs(request)).jobs}
    assert (shown[first].partitions_ahead, shown[second].partitions_ahead) == (0, 2)
    watched = await anext(watch(service, second))
    assert watched.partitions_ahead == 2
    for job, own in ((shown[first], 3), (watched, 3)):
        left_s = job.expected_end.ToNanoseconds() / 1e9 - before_s
        assert own <= left_s < own + 60, "one second a partition, one at a time"
    idle.set()
    ended = await service.end_of(second)
    assert (ended.partitions_ahead, ended.HasField("expected_end")) == (0, False)


async def test_a_long_poll_ends_with_its_wait_and_the_job_goes_on(service: Running) -> None:
    answer = await service.submit([(2, 3)])
    request = proving_pb2.GetJobRequest(job_id=answer.job.job_id)
    request.wait.FromMilliseconds(50)
    job = (await service.proving.GetJob(request)).job
    assert job.state == proving_pb2.JOB_STATE_QUEUED
    assert job.partitions[0].waiting_for


async def test_pages_of_jobs_are_stable_while_jobs_end(service: Running, connect: Connect) -> None:
    ids = [(await service.submit([(2, index)])).job.job_id for index in range(7)]
    first = await service.proving.ListJobs(proving_pb2.ListJobsRequest(page_size=3))
    await connect()
    for job_id in ids:
        await service.end_of(job_id)
    await service.submit([(9, 9)])
    seen = [job.job_id for job in first.jobs]
    token = first.next_page_token
    while token:
        page = await service.proving.ListJobs(
            proving_pb2.ListJobsRequest(page_size=3, page_token=token)
        )
        seen += [job.job_id for job in page.jobs]
        token = page.next_page_token
    assert seen[:7] == ids
    assert len(seen) == 8
    assert not any(job.partitions for job in first.jobs)


async def test_jobs_are_filtered_by_state_circuit_and_request_id(
    service: Running, connect: Connect
) -> None:
    await connect()
    one = await service.submit([(2, 3)], request_id="one")
    await service.end_of(one.job.job_id)
    two = await service.submit([(2, 4)], request_id="two")
    await service.end_of(two.job.job_id)

    async def found(**filters: object) -> list[str]:
        request = proving_pb2.ListJobsRequest(**filters)  # type: ignore[arg-type]
        return [job.request_id for job in (await service.proving.ListJobs(request)).jobs]

    assert await found(request_id="two") == ["two"]
    assert await found(states=[COMPLETED]) == ["one", "two"]
    assert await found(states=[FAILED]) == []
    assert await found(circuit_id="other") == []


async def test_partitions_are_paged_in_order(service: Running, connect: Connect) -> None:
    await connect(max_leases=8)
    answer = await service.submit([(2, index) for index in range(5)])
    await service.end_of(answer.job.job_id)
    indexes: list[int] = []
    token = ""
    while True:
        page = await service.proving.ListPartitions(
            proving_pb2.ListPartitionsRequest(
                job_id=answer.job.job_id, page_size=2, page_token=token
            )
        )
        indexes += [part.index for part in page.partitions]
        token = page.next_page_token
        if not token:
            break
    assert indexes == [0, 1, 2, 3, 4]


async def test_an_unknown_job_is_not_found_by_any_call(service: Running) -> None:
    stub = service.proving
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await stub.GetJob(proving_pb2.GetJobRequest(job_id="é" * 1_000_000))
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await stub.GetJob(proving_pb2.GetJobRequest(job_id="x"))
    request = proving_pb2.GetJobRequest(job_id="x")
    request.wait.FromSeconds(5)
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await stub.GetJob(request)
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await stub.ListPartitions(proving_pb2.ListPartitionsRequest(job_id="x"))
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await stub.CancelJob(proving_pb2.CancelJobRequest(job_id="x"))
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        async for _ in stub.WatchJob(proving_pb2.WatchJobRequest(job_id="x")):
            pass


async def test_with_a_budget_for_two_never_more_than_two_are_held(
    service: Running, connect: Connect
) -> None:
    # Key 10 MiB and twice the peak of 4 MiB.
    peer: Peer = await connect(max_leases=8, total_bytes=18 << 20)
    answer = await service.submit([(2, index) for index in range(8)])
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    assert peer.most_held == 2


async def test_critical_work_overtakes_waiting_normal_work(
    service: Running, connect: Connect
) -> None:
    normal = await service.submit([(2, index) for index in range(4)])
    critical = await service.submit([(3, 3)], priority=types_pb2.PRIORITY_CRITICAL)
    peer: Peer = await connect(max_leases=1)
    await service.end_of(normal.job.job_id)
    assert peer.proved[0][0] == critical.job.job_id


async def test_the_server_tells_its_limits_and_build(service: Running) -> None:
    info = await service.proving.GetServerInfo(proving_pb2.GetServerInfoRequest())
    assert info.epoch >= 1_700_000_000
    assert (info.max_partitions, info.chunk_bytes) == (1024, 1 << 20)
    assert len(info.fingerprint.code_sha256) == 32


async def test_the_fleet_shows_desired_and_actual_without_inputs(
    service: Running, connect: Connect
) -> None:
    peer: Peer = await connect(max_leases=1)
    peer.work.clear()
    await service.submit([(2, 3), (2, 4)])
    await peer.started.wait()
    said = peer.hello()
    said.fingerprint.SetInParent()
    snapshots = service.fleet.WatchFleet(fleet_pb2.WatchFleetRequest())
    async for message in snapshots:
        (view,) = message.fleet.provers
        if view.desired.leases and view.actual.leases:
            break
    snapshots.cancel()
    assert view.connected
    assert view.hello == said
    assert view.charged.host == (10 + 4) << 20
    assert not any(lease.inline for lease in view.desired.leases)
    assert message.fleet.jobs_open == 1
    assert [lane.waiting for lane in message.fleet.lanes] == [1]


async def test_a_cordoned_prover_takes_nothing_until_it_is_active_again(
    service: Running, connect: Connect
) -> None:
    await connect()
    await service.fleet.SetProverMode(
        fleet_pb2.SetProverModeRequest(
            prover_id="gpu-0", mode=fleet_pb2.MODE_CORDONED, reason="repair"
        )
    )
    answer = await service.submit([(2, 3)])
    request = proving_pb2.GetJobRequest(job_id=answer.job.job_id)
    request.wait.FromMilliseconds(100)
    assert (await service.proving.GetJob(request)).job.state == proving_pb2.JOB_STATE_QUEUED
    assert (await service.prover_view("gpu-0")).reason == "repair"
    await service.fleet.SetProverMode(
        fleet_pb2.SetProverModeRequest(prover_id="gpu-0", mode=fleet_pb2.MODE_ACTIVE)
    )
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    with refused(NOT_FOUND, "PROVER_UNKNOWN"):
        await service.fleet.SetProverMode(fleet_pb2.SetProverModeRequest(prover_id="nobody"))


async def test_a_watch_that_is_cancelled_at_any_moment_leaves_at_once(service: Running) -> None:
    job_id = (await service.submit([(2, 3)])).job.job_id
    engine = service.scheduler.engine
    request = proving_pb2.WatchJobRequest(job_id=job_id)
    gc.disable()  # nobody may rely on it to close a handler
    try:
        for rounds in range(150):
            call = service.proving.WatchJob(request)
            for _ in range(rounds % 50):
                await asyncio.sleep(0)
            call.cancel()
        async with asyncio.timeout(30):
            while engine._signals or engine._waiters:  # noqa: ASYNC110 - it sets no event of ours
                await asyncio.sleep(0)
    finally:
        gc.enable()
