"""What was accepted survives: restarts, SIGKILL of the real process, a store that is away."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from partita.circuits.catalogue import Catalogue
from partita.scheduler.store import DataDirInUseError
from partita.v1 import proving_pb2, proving_pb2_grpc
from tests.scheduler.peer import Peer, Prover, connected, product_statement
from tests.scheduler.processes import calling, process, ready
from tests.scheduler.running import Running, blob_ref, refused, request_of, running, upload
from tests.scheduler.stores import FailingStore

COMPLETED = proving_pb2.JOB_STATE_COMPLETED
PAIRS = [(2, index + 3) for index in range(4)]


async def test_a_restart_keeps_jobs_and_proved_partitions(data_dir: Path, prover: Prover) -> None:
    async with running(data_dir, prover) as service:
        answer = await service.submit(PAIRS, request_id="r")
        job_id, epoch = answer.job.job_id, service.scheduler.epoch
        first = service.peer("gpu-0", max_leases=1)
        async with connected(first):
            await _until_done(service, job_id, 2)
            first.work.clear()
            done = set(first.proved)
    async with running(data_dir, prover) as service:
        assert service.scheduler.epoch > epoch
        second = service.peer("gpu-1")
        async with connected(second):
            job = await service.end_of(job_id)
            assert job.state == COMPLETED
            parts = await service.results(job_id)
        assert [part.statement for part in parts] == [product_statement(*pair) for pair in PAIRS]
        proved_first = {(job_id, part.index) for part in parts if part.prover_id == "gpu-0"}
        assert len(proved_first) >= 2
        assert proved_first <= done
        assert not proved_first & set(second.proved), "a verified partition is not proved again"
        again = await service.submit(PAIRS, request_id="r")
        assert (again.attached, again.job.job_id) == (True, job_id)


async def _until_done(service: Running, job_id: str, count: int) -> None:
    request = proving_pb2.WatchJobRequest(job_id=job_id)
    async for message in service.proving.WatchJob(request):
        if message.job.partitions_done >= count:
            return


async def test_a_lease_of_before_the_restart_is_taken_up_by_its_prover(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service:
        answer = await service.submit(PAIRS[:1])
        peer = service.peer("gpu-0")
        peer.work.clear()
        async with connected(peer):
            await peer.started.wait()
    peer.work.set()
    async with running(data_dir, prover) as service:
        peer.address = service.scheduler.addresses.prover
        async with connected(peer):
            job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert job.partitions[0].attempt == 1
    assert peer.proved == [(job.job_id, 0)]


async def test_inputs_of_unfinished_jobs_survive_and_orphans_go(
    data_dir: Path, prover: Prover
) -> None:
    needed = b'{"left":"2","right":"3"}'
    async with running(data_dir, prover) as service:
        await upload(service.blobs, needed)
        await upload(service.blobs, b"an orphan")
        part = proving_pb2.PartitionInput(blob=blob_ref(needed))
        request = request_of([], input_format="circom.json", partitions=[part])
        job_id = (await service.proving.SubmitJob(request)).job.job_id
    (data_dir / "blobs" / "half.1.part").write_bytes(b"half")
    async with running(data_dir, prover, blob_ticket="0") as service:
        names = [path.name for path in (data_dir / "blobs").iterdir()]
        assert names == [blob_ref(needed).sha256.hex()]
        async with connected(service.peer()):
            assert (await service.end_of(job_id)).state == COMPLETED
        assert not list((data_dir / "blobs").iterdir()), "inputs go with the job that needed them"


async def test_a_ticket_keeps_its_promise_over_a_restart(data_dir: Path, prover: Prover) -> None:
    async with running(data_dir, prover) as service:
        await upload(service.blobs, b"soon needed")
    async with running(data_dir, prover):
        assert [path.read_bytes() for path in (data_dir / "blobs").iterdir()] == [b"soon needed"]


async def test_a_second_scheduler_on_one_data_directory_is_refused(
    service: Running, data_dir: Path, prover: Prover
) -> None:
    with pytest.raises(DataDirInUseError, match=f"another scheduler .process {os.getpid()}"):
        async with running(data_dir, prover):
            pass
    assert (await service.submit([(2, 3)])).job.job_id


async def test_a_store_that_is_away_for_a_while_loses_nothing(
    data_dir: Path, prover: Prover
) -> None:
    store = FailingStore(data_dir / "store.db")
    async with running(
        data_dir, prover, store, store_retry="20ms", max_unsaved_records=8
    ) as service:
        peer = service.peer("gpu-0", max_leases=8)
        peer.work.clear()
        async with connected(peer):
            answer = await service.submit(PAIRS)
            await peer.started.wait()
            store.away.set()
            peer.work.set()
            async with asyncio.timeout(30):
                while not service.scheduler.why_not_ready():  # noqa: ASYNC110  (it tells nobody)
                    await asyncio.sleep(0.01)
            early = proving_pb2.GetJobRequest(job_id=answer.job.job_id)
            early.wait.FromMilliseconds(50)
            job = (await service.proving.GetJob(early)).job
            assert job.state == proving_pb2.JOB_STATE_RUNNING, "no end before it is durable"
            assert len(peer.held) == 4, "no outcome is acknowledged before it is durable"
            with refused(grpc.StatusCode.UNAVAILABLE, "STORE_BEHIND") as refusal:
                await service.submit([(7, 7)])
            assert refusal.retry_ns is not None
            store.away.clear()
            assert (await service.end_of(answer.job.job_id)).state == COMPLETED
            assert len(peer.proved) == 4
            assert (await service.submit([(7, 7)])).job.job_id
    async with running(data_dir, prover) as service:
        assert (await service.end_of(answer.job.job_id)).state == COMPLETED


async def test_an_acceptance_is_answered_only_when_it_is_durable(
    data_dir: Path, prover: Prover
) -> None:
    store = FailingStore(data_dir / "store.db")
    async with running(data_dir, prover, store, store_retry="20ms") as service:
        store.away.set()
        call = asyncio.create_task(service.submit([(2, 3)]))
        async with asyncio.timeout(30):
            while service.scheduler.engine.store_failures < 2:
                await asyncio.wait({call}, timeout=0.01)
        assert not call.done()
        assert not (await service.proving.ListJobs(proving_pb2.ListJobsRequest())).jobs
        store.away.clear()
        assert (await call).job.state == proving_pb2.JOB_STATE_QUEUED


# The real process


async def test_after_a_sigkill_the_job_ends_and_no_verified_partition_is_proved_again(
    data_dir: Path, prover: Prover, circuits: Path
) -> None:
    manifest = Catalogue(circuits).show("product").manifest_sha256
    peer = Peer("", prover, manifest, max_leases=1)
    async with process(data_dir) as child:
        addresses = await ready(child, data_dir)
        peer.address = addresses["prover_listen"]
        async with calling(addresses["listen"]) as stub, connected(peer):
            job_id = (await stub.SubmitJob(request_of(PAIRS))).job.job_id
            async for message in stub.WatchJob(proving_pb2.WatchJobRequest(job_id=job_id)):
                if message.job.partitions_done >= 2:
                    break
            child.send_signal(signal.SIGKILL)
            await child.wait()
    async with process(data_dir) as child:
        addresses = await ready(child, data_dir)
        peer.address = addresses["prover_listen"]
        async with calling(addresses["listen"]) as stub, connected(peer):
            request = proving_pb2.GetJobRequest(job_id=job_id)
            request.wait.FromSeconds(60)
            job = (await stub.GetJob(request)).job
            assert job.state == COMPLETED
            assert len(set(peer.proved)) == len(peer.proved) == 4


async def test_sigterm_drains_and_exits_with_zero(data_dir: Path) -> None:
    async with process(data_dir) as child:
        addresses = await ready(child, data_dir)
        async with grpc.aio.insecure_channel(addresses["listen"]) as channel:
            stub = proving_pb2_grpc.ProvingServiceStub(channel)
            job_id = (await stub.SubmitJob(request_of([(2, 3)]))).job.job_id
            watch = stub.WatchJob(proving_pb2.WatchJobRequest(job_id=job_id))
            assert (await watch.read()).job.job_id == job_id
            child.send_signal(signal.SIGTERM)
            with refused(grpc.StatusCode.UNAVAILABLE, "DRAINING"):
                await watch.read()
        assert await asyncio.wait_for(child.wait(), 30) == 0
        assert not (data_dir / "run" / "scheduler.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "0.0.0.0:0"], "allow_plaintext"),
        (["--log-level", "loud"], "log_level"),
        (["--config", "/nowhere.toml"], "/nowhere.toml"),
    ],
)
async def test_a_wrong_configuration_ends_with_two_and_says_what_to_change(
    data_dir: Path, arguments: list[str], says: str
) -> None:
    async with process(data_dir, *arguments) as child:
        _, errors = await child.communicate()
        assert child.returncode == 2
        assert says in errors.decode()


async def test_health_and_reflection_answer_on_both_ports(service: Running) -> None:
    ports = {
        service.scheduler.addresses.client: "partita.v1.ProvingService",
        service.scheduler.addresses.prover: "partita.v1.DispatchService",
    }
    for address, name in ports.items():
        async with grpc.aio.insecure_channel(address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            for version in ("v1", "v1alpha"):
                call = channel.stream_stream(
                    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                    request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                    response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
                )(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
                listed = [
                    service.name
                    async for message in call
                    for service in message.list_services_response.service
                ]
                assert name in listed


async def test_a_stop_ends_streams_with_draining_and_answers_long_polls(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service:
        peer = service.peer()
        peer.work.clear()
        stream = asyncio.create_task(peer.run())
        answer = await service.submit([(2, 3)])
        await peer.started.wait()
        poll = asyncio.create_task(service.end_of(answer.job.job_id))
        await service.until_connected("gpu-0")
        await service.scheduler.stop()
        with refused(grpc.StatusCode.UNAVAILABLE, "DRAINING"):
            await stream
        assert (await poll).state == proving_pb2.JOB_STATE_RUNNING
