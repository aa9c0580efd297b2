"""Full and read-only disks, taken addresses, a store that stalls, newer data, a second SIGTERM.

Each time: an error that says what is wrong and what to change, and nothing that was accepted is
lost. Disks are small tmpfs mounted by the test, which needs root.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import grpc
import pytest

from partita.scheduler.schema import SCHEMA_VERSION
from partita.scheduler.store import StoreError
from partita.service.clock import Clock
from partita.service.grpcio import AddressInUseError
from partita.service.paths import DataDirUnusableError
from partita.v1 import (
    blobs_pb2,
    blobs_pb2_grpc,
    dispatch_pb2,
    dispatch_pb2_grpc,
    proving_pb2,
    proving_pb2_grpc,
    types_pb2,
)
from tests.scheduler.peer import Prover, connected
from tests.scheduler.processes import calling, process, ready
from tests.scheduler.running import Running, blob_ref, refused, request_of, running, upload
from tests.scheduler.stores import StallingStore
from tests.small_disk import filled, read_only, small_disk

COMPLETED = proving_pb2.JOB_STATE_COMPLETED
MIB = 1 << 20
Code = grpc.StatusCode


@pytest.fixture
def disk(tmp_path: Path, circuits: Path) -> Iterator[Path]:
    """A data directory on a disk of 4 MiB."""
    where = tmp_path / "disk"
    with small_disk(where, 4 * MIB):
        shutil.copytree(circuits, where / "circuits")
        yield where


async def test_a_full_disk_under_the_store_holds_answers_back_and_loses_nothing(
    disk: Path, prover: Prover
) -> None:
    settings: dict[str, Any] = {"store_retry": "20ms", "max_unsaved_records": 4}
    async with running(disk, prover, **settings) as service:
        first = (await service.submit([(2, 3)])).job.job_id
        peer = service.peer()
        with filled(disk):
            held = [
                asyncio.create_task(service.submit([(3, n)], request_id=f"{n}")) for n in range(20)
            ]
            async with asyncio.timeout(30):
                while not service.scheduler.why_not_ready():
                    await asyncio.wait(held, timeout=0.02)
            (why,) = service.scheduler.why_not_ready()
            assert "the store is behind" in why
            with refused(Code.UNAVAILABLE, "STORE_BEHIND") as refusal:
                await service.submit([(9, 9)])
            assert refusal.retry_ns is not None
        answers = await asyncio.gather(*held, return_exceptions=True)
        accepted = [x.job.job_id for x in answers if not isinstance(x, BaseException)]
        assert accepted, "what had been held back is answered once there is room"
        for error in answers:
            if isinstance(error, BaseException):
                assert isinstance(error, grpc.aio.AioRpcError)
                assert error.code() is Code.UNAVAILABLE
        assert not service.scheduler.why_not_ready()
        async with connected(peer):
            for job_id in (first, *accepted):
                assert (await service.end_of(job_id)).state == COMPLETED
    async with running(disk, prover) as service:
        for job_id in (first, *accepted):
            assert (await service.end_of(job_id)).state == COMPLETED


async def test_a_start_on_a_full_disk_says_so_and_works_once_there_is_room(
    disk: Path, prover: Prover
) -> None:
    with filled(disk), pytest.raises((DataDirUnusableError, StoreError)) as caught:
        async with running(disk, prover):
            pass
    assert str(disk) in str(caught.value)
    assert "full" in str(caught.value) or "No space" in str(caught.value)
    async with running(disk, prover) as service:
        assert (await service.submit([(2, 3)])).job.job_id


async def test_a_full_disk_under_the_blobs_refuses_uploads_and_keeps_what_is_there(
    data_dir: Path, prover: Prover
) -> None:
    blobs = data_dir / "blobs"
    kept = b'{"left":"2","right":"3"}'
    with small_disk(blobs, MIB):
        async with running(data_dir, prover) as service:
            await upload(service.blobs, kept)
            part = proving_pb2.PartitionInput(blob=blob_ref(kept))
            request = request_of([], input_format="circom.json", partitions=[part])
            job_id = (await service.proving.SubmitJob(request)).job.job_id
            large = os.urandom(2 * MIB)
            with refused(Code.RESOURCE_EXHAUSTED, "INGEST_FULL") as refusal:
                await upload(service.blobs, large)
            assert "No space left" in refusal.message
            assert refusal.retry_ns is not None
            assert [path.name for path in blobs.iterdir()] == [blob_ref(kept).sha256.hex()]
            await upload(service.blobs, large[: MIB // 2])
            async with connected(service.peer()):
                assert (await service.end_of(job_id)).state == COMPLETED


async def test_a_read_only_data_directory_is_named(disk: Path, prover: Prover) -> None:
    async with running(disk, prover) as service:
        job_id = (await service.submit([(2, 3)])).job.job_id
    with read_only(disk):
        with pytest.raises(DataDirUnusableError, match="Read-only file system") as caught:
            async with running(disk, prover):
                pass
        assert str(disk) in str(caught.value)
        async with process(disk) as child:
            _, errors = await child.communicate()
            assert child.returncode == 2
            assert "Read-only file system" in errors.decode()
            assert "Traceback" not in errors.decode()
    async with running(disk, prover) as service:
        assert (await service.proving.GetJob(proving_pb2.GetJobRequest(job_id=job_id))).job


@pytest.mark.parametrize("which", ["listen", "prover_listen", "unix socket"])
async def test_a_taken_address_is_named_and_its_owner_goes_on(
    data_dir: Path, tmp_path: Path, circuits: Path, prover: Prover, which: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(circuits, other / "circuits")
    name = "listen" if which == "unix socket" else which
    mine: dict[str, Any] = {name: f"unix://{tmp_path}/s"} if which == "unix socket" else {}
    async with running(data_dir, prover, **mine) as service:
        addresses = service.scheduler.addresses
        taken = addresses.client if name == "listen" else addresses.prover
        theirs: dict[str, Any] = {name: taken}
        with pytest.raises(AddressInUseError, match=taken):
            async with running(other, prover, **theirs):
                pass
        async with process(other, f"--{name.replace('_', '-')}", taken) as child:
            _, errors = await child.communicate()
            assert child.returncode == 2
            assert taken in errors.decode()
            assert "Traceback" not in errors.decode()
        assert (await service.submit([(2, 3)])).job.job_id
    async with running(other, prover, **theirs) as service:
        assert (await service.submit([(2, 3)])).job.job_id


async def test_a_unix_socket_in_a_folder_that_is_not_there_is_named(
    data_dir: Path, prover: Prover
) -> None:
    with pytest.raises(AddressInUseError, match=r"/nowhere/s\.lock: No such file"):
        async with running(data_dir, prover, listen="unix:///nowhere/s"):
            pass


class LaterClock(Clock):
    """A clock that can be moved on."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ns = 0

    def now_ns(self) -> int:
        return super().now_ns() + self.ahead_ns


async def test_a_store_that_stalls_for_half_a_minute_delays_answers_and_loses_nothing(
    data_dir: Path, prover: Prover
) -> None:
    store = StallingStore(data_dir / "store.db")
    async with running(data_dir, prover, store) as service:
        clock = service.scheduler.engine.clock = LaterClock()
        peer = service.peer(max_leases=4)
        peer.work.clear()
        async with connected(peer):
            running_job = (await service.submit([(2, 3), (4, 5)])).job.job_id
            await peer.started.wait()
            store.goes_on.clear()
            call = asyncio.create_task(service.submit([(6, 7)]))
            peer.work.set()
            await asyncio.to_thread(store.waits.wait)
            for _ in range(30):
                clock.ahead_ns += 10**9
                job = (await service.proving.GetJob(_get(running_job))).job
                assert job.state == proving_pb2.JOB_STATE_RUNNING
                service.scheduler.engine.run_now()
            assert not call.done(), "no acceptance before it is durable"
            view = await service.prover_view("gpu-0")
            assert view.connected, "the stall of the store is not the silence of a prover"
            store.goes_on.set()
            for job_id in (running_job, (await call).job.job_id):
                assert (await service.end_of(job_id)).state == COMPLETED
            assert len(set(peer.proved)) == len(peer.proved) == 3
    async with running(data_dir, prover) as service:
        assert (await service.end_of(running_job)).state == COMPLETED


def _get(job_id: str) -> proving_pb2.GetJobRequest:
    return proving_pb2.GetJobRequest(job_id=job_id)


async def test_an_upload_beyond_the_limit_is_refused_before_it_is_read(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, max_blob="1MiB", blob_quota="2MiB") as service:
        with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
            await upload(service.blobs, bytes(MIB + 1))
        assert f"size_bytes = {MIB + 1}" in refusal.message
        assert str(MIB) in refusal.message
        for byte in b"ab":
            await upload(service.blobs, bytes([byte]) * (MIB - 1))
        with refused(Code.RESOURCE_EXHAUSTED, "INGEST_FULL") as refusal:
            await upload(service.blobs, b"c" * 100)
        assert refusal.retry_ns is not None
        assert len(list((data_dir / "blobs").iterdir())) == 2


async def test_a_second_sigterm_ends_at_once_and_loses_nothing(
    data_dir: Path, tmp_path: Path
) -> None:
    config = tmp_path / "partita.toml"
    config.write_text('[scheduler]\nstop_grace = "1h"\n')
    async with process(data_dir, "--config", str(config)) as child:
        addresses = await ready(child, data_dir)
        async with grpc.aio.insecure_channel(addresses["listen"]) as channel:
            stub = proving_pb2_grpc.ProvingServiceStub(channel)
            job_id = (await stub.SubmitJob(request_of([(2, 3)]))).job.job_id
            upload_call: Any = blobs_pb2_grpc.BlobServiceStub(channel).Upload()
            await upload_call.write(blobs_pb2.UploadRequest(header=blob_ref(b"never comes")))
            await stub.GetJob(_get(job_id))  # the upload was sent before and has begun
            child.send_signal(signal.SIGTERM)
            assert child.stderr is not None
            async for line in child.stderr:
                if b"scheduler.stopping" in line:
                    break
            child.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(child.wait(), 30) == 128 + signal.SIGTERM
    async with process(data_dir) as child:
        addresses = await ready(child, data_dir)
        async with calling(addresses["listen"]) as stub:
            assert (await stub.GetJob(_get(job_id))).job.job_id == job_id


async def test_a_data_directory_of_a_newer_schema_is_refused_by_both_versions(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service:
        job_id = (await service.submit([(2, 3)])).job.job_id
    _set_version(data_dir, SCHEMA_VERSION + 1)
    async with process(data_dir) as child:
        _, errors = await child.communicate()
        assert child.returncode == 2
        text = errors.decode()
        assert f"schema version {SCHEMA_VERSION + 1}" in text
        assert f"versions up to {SCHEMA_VERSION}" in text
        assert "Traceback" not in text
    _set_version(data_dir, SCHEMA_VERSION)
    async with running(data_dir, prover) as service:
        assert (await service.proving.GetJob(_get(job_id))).job.job_id == job_id


def _set_version(data_dir: Path, version: int) -> None:
    connection = apsw.Connection(str(data_dir / "store.db"))
    connection.pragma("user_version", version)
    connection.close()


@pytest.mark.parametrize(("contract", "who"), [(0, "prover"), (2, "scheduler")])
async def test_a_prover_one_contract_revision_away_is_told_who_must_be_upgraded(
    service: Running, contract: int, who: str
) -> None:
    async with connected(service.peer("gpu-good")) as good:
        await good.greeted.wait()
        async with grpc.aio.insecure_channel(service.scheduler.addresses.prover) as channel:
            call: Any = dispatch_pb2_grpc.DispatchServiceStub(channel).Work()
            hello = dispatch_pb2.Hello(
                prover_id="gpu-other",
                instance_id="i",
                contract_min=contract,
                contract_max=contract,
                total=types_pb2.Bytes(host=MIB),
                max_leases=1,
            )
            await call.write(dispatch_pb2.WorkRequest(hello=hello))
            with refused(Code.FAILED_PRECONDITION, "CONTRACT_MISMATCH") as refusal:
                await call.read()
        assert f"contract revision {contract}" in refusal.message
        assert f"upgrade the {who}" in refusal.message
        job_id = (await service.submit([(2, 3)])).job.job_id
        assert (await service.end_of(job_id)).state == COMPLETED
