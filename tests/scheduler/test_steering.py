"""Over the wire: retries, quarantine, and keys that an operator pins or evicts."""

from __future__ import annotations

from pathlib import Path

import grpc

from partita.v1 import dispatch_pb2, fleet_pb2, proving_pb2
from tests.scheduler.peer import KEY, Connect, Prover, connected, product_wtns
from tests.scheduler.running import Running, blob_ref, refused, request_of, running, upload

COMPLETED = proving_pb2.JOB_STATE_COMPLETED
FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
NOT_FOUND = grpc.StatusCode.NOT_FOUND


async def retry(service: Running, job_id: str) -> proving_pb2.Job:
    request = proving_pb2.RetryJobRequest(job_id=job_id)
    answer: proving_pb2.RetryJobResponse = await service.proving.RetryJob(request)
    return answer.job


async def cancel(service: Running, job_id: str) -> None:
    await service.proving.CancelJob(proving_pb2.CancelJobRequest(job_id=job_id))


async def set_prover(service: Running, prover_id: str, **fields: object) -> fleet_pb2.ProverView:
    request = fleet_pb2.SetProverModeRequest(prover_id=prover_id, **fields)  # type: ignore[arg-type]
    answer: fleet_pb2.SetProverModeResponse = await service.fleet.SetProverMode(request)
    return answer.prover


async def set_residency(service: Running, residency: int, prover_id: str = "") -> int:
    request = fleet_pb2.SetResidencyRequest(
        circuit_id="product",
        prover_id=prover_id,
        residency=residency,  # type: ignore[arg-type]
    )
    answer: fleet_pb2.SetResidencyResponse = await service.fleet.SetResidency(request)
    return answer.changed.host


async def until_proved(service: Running, job_id: str, count: int) -> None:
    calls = service.proving.WatchJob(proving_pb2.WatchJobRequest(job_id=job_id))
    async for message in calls:
        if message.job.partitions_done >= count:
            break
    calls.cancel()


async def until_reported(service: Running, prover_id: str) -> None:
    """Return once the fleet shows what a prover holds."""
    calls = service.fleet.WatchFleet(fleet_pb2.WatchFleetRequest())
    async for message in calls:
        if any(
            view.hello.prover_id == prover_id and view.HasField("actual")
            for view in message.fleet.provers
        ):
            break
    calls.cancel()


def all_but_the_first(lease: dispatch_pb2.Lease, proof: bytes) -> bytes:
    return proof if lease.partition_index == 0 else b"\x00" * 256


async def half_done(service: Running, connect: Connect, **fields: object) -> str:
    """Cancel a job of two partitions when prover "bad" has proved the first one only."""
    await connect("bad", spoil=all_but_the_first)
    answer = await service.submit([(2, 3), (2, 4)], **fields)
    await until_proved(service, answer.job.job_id, 1)
    await set_prover(service, "bad", mode=fleet_pb2.MODE_CORDONED)
    await cancel(service, answer.job.job_id)
    return answer.job.job_id


async def test_a_retry_returns_the_kept_proof_and_proves_the_rest(
    service: Running, connect: Connect
) -> None:
    job_id = await half_done(service, connect, request_id="r")
    kept = (await service.results(job_id))[0]
    new = await retry(service, job_id)
    assert new.job_id != job_id
    assert new.partitions_done == 1
    good = await connect("good")
    assert (await service.end_of(new.job_id)).state == COMPLETED
    parts = await service.results(new.job_id)
    assert (parts[0].proof, parts[0].prover_id) == (kept.proof, "bad")
    assert good.proved == [(new.job_id, 1)]


async def test_a_retry_of_a_job_with_a_retry_attaches(service: Running, connect: Connect) -> None:
    job_id = await half_done(service, connect)
    first = await retry(service, job_id)
    assert (await retry(service, job_id)).job_id == first.job_id
    with refused(FAILED_PRECONDITION, "NOT_RETRYABLE"):
        await retry(service, first.job_id)
    with refused(NOT_FOUND, "JOB_UNKNOWN"):
        await retry(service, "nobody")


async def test_a_retry_whose_inputs_are_gone_names_them_and_goes_on_once_they_are_back(
    service: Running, connect: Connect
) -> None:
    data = product_wtns(6, 7)
    await upload(service.blobs, data)
    partition = proving_pb2.PartitionInput(blob=blob_ref(data))
    answer = await service.proving.SubmitJob(request_of([], partitions=[partition]))
    await cancel(service, answer.job.job_id)
    service.scheduler.engine.blobs.path(blob_ref(data).sha256).unlink()
    with refused(FAILED_PRECONDITION, "BLOB_MISSING") as refusal:
        await retry(service, answer.job.job_id)
    assert refusal.metadata is not None
    assert refusal.metadata["sha256"] == blob_ref(data).sha256.hex()
    await upload(service.blobs, data)
    new = await retry(service, answer.job.job_id)
    await connect()
    assert (await service.end_of(new.job_id)).state == COMPLETED


async def test_a_retry_and_what_it_took_over_survive_a_restart(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service:
        bad = service.peer("bad", spoil=all_but_the_first)
        async with connected(bad):
            answer = await service.submit([(2, 3), (2, 4)])
            await until_proved(service, answer.job.job_id, 1)
        await cancel(service, answer.job.job_id)
        new = await retry(service, answer.job.job_id)
    async with running(data_dir, prover) as service:
        assert (await retry(service, answer.job.job_id)).job_id == new.job_id
        good = service.peer("good")
        async with connected(good):
            assert (await service.end_of(new.job_id)).state == COMPLETED
        assert good.proved == [(new.job_id, 1)]


async def test_three_proofs_that_another_prover_had_to_make_quarantine_a_prover(
    service: Running, connect: Connect
) -> None:
    bad = await connect("bad", spoil=lambda lease, proof: b"\x00" * 256)
    for number in range(3):
        bad.work.clear()
        bad.started.clear()
        await set_prover(service, "bad", mode=fleet_pb2.MODE_ACTIVE)
        answer = await service.submit([(2, 3 + number)])
        await bad.started.wait()
        # Cordoned before it answers: it would get the partition again, as nobody else can.
        await set_prover(service, "bad", mode=fleet_pb2.MODE_CORDONED)
        bad.work.set()
        async for message in service.proving.WatchJob(
            proving_pb2.WatchJobRequest(job_id=answer.job.job_id)
        ):
            if message.job.partitions[0].failures:
                break
        if number == 0:
            await connect("good")
        await set_prover(service, "good", mode=fleet_pb2.MODE_ACTIVE)
        assert (await service.end_of(answer.job.job_id)).state == COMPLETED
        await set_prover(service, "good", mode=fleet_pb2.MODE_CORDONED)
    view = await service.prover_view("bad")
    assert (view.trust, view.debits) == (fleet_pb2.TRUST_QUARANTINED, 3)
    assert view.reason == "quarantined: 3 of its proofs did not verify where another did"
    view = await set_prover(service, "bad", trust=fleet_pb2.TRUST_TRUSTED)
    assert (view.trust, view.debits) == (fleet_pb2.TRUST_TRUSTED, 0)


async def test_an_operators_quarantine_survives_a_restart_until_it_is_released(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service, connected(service.peer("gpu-0")):
        await service.until_connected("gpu-0")
        await set_prover(
            service, "gpu-0", trust=fleet_pb2.TRUST_QUARANTINED, reason="smells of smoke"
        )
    async with running(data_dir, prover) as service, connected(service.peer("gpu-0")):
        await service.until_connected("gpu-0")
        view = await service.prover_view("gpu-0")
        assert (view.trust, view.reason) == (fleet_pb2.TRUST_QUARANTINED, "smells of smoke")
        answer = await service.submit([(2, 3)])
        assert not (await service.prover_view("gpu-0")).desired.leases
        await set_prover(service, "gpu-0", trust=fleet_pb2.TRUST_TRUSTED)
        assert (await service.end_of(answer.job.job_id)).state == COMPLETED


async def test_a_pinned_key_is_wanted_and_an_evicted_one_is_not(
    service: Running, connect: Connect
) -> None:
    peer = await connect("gpu-0")
    await until_reported(service, "gpu-0")
    assert not (await service.prover_view("gpu-0")).desired.keys
    assert await set_residency(service, fleet_pb2.RESIDENCY_PINNED) == KEY.host
    assert list((await service.prover_view("gpu-0")).desired.keys) == [peer.manifest_sha256]
    assert await set_residency(service, fleet_pb2.RESIDENCY_EVICTED, "gpu-0") == KEY.host
    assert not (await service.prover_view("gpu-0")).desired.keys


async def test_a_residency_names_a_known_circuit_and_prover_and_a_wish(service: Running) -> None:
    with refused(NOT_FOUND, "PROVER_UNKNOWN"):
        await set_residency(service, fleet_pb2.RESIDENCY_PINNED, "nobody")
    with refused(NOT_FOUND, "UNKNOWN_CIRCUIT"):
        await service.fleet.SetResidency(
            fleet_pb2.SetResidencyRequest(
                circuit_id="nothing", residency=fleet_pb2.RESIDENCY_PINNED
            )
        )
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        await set_residency(service, fleet_pb2.RESIDENCY_UNSPECIFIED)
    assert refusal.fields == ("residency",)
