"""A real scheduler in this process with stubs of its services, and requests of products."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from partita.circuits.catalogue import Catalogue
from partita.scheduler.app import Scheduler
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.store import Store
from partita.service.config import load
from partita.service.grpcio import channel_options, reason_of
from partita.v1 import (
    blobs_pb2,
    blobs_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    proving_pb2,
    proving_pb2_grpc,
    types_pb2,
)
from tests.scheduler.peer import Peer, Prover, product_wtns

LISTEN = {"listen": "127.0.0.1:0", "prover_listen": "127.0.0.1:0"}


@dataclass
class Running:
    """A scheduler with stubs of its public services."""

    scheduler: Scheduler
    proving: proving_pb2_grpc.ProvingServiceStub
    blobs: blobs_pb2_grpc.BlobServiceStub
    fleet: fleet_pb2_grpc.FleetServiceStub
    channel: grpc.aio.Channel
    manifest_sha256: bytes
    prover: Prover

    def peer(self, prover_id: str = "gpu-0", **settings: Any) -> Peer:
        settings.setdefault("instance_id", f"{prover_id}-process-1")
        return Peer(
            address=self.scheduler.addresses.prover,
            prover=self.prover,
            manifest_sha256=self.manifest_sha256,
            prover_id=prover_id,
            **settings,
        )

    async def submit(
        self, pairs: list[tuple[int, int]], **fields: Any
    ) -> proving_pb2.SubmitJobResponse:
        """Submit products as inline witnesses."""
        request = request_of(pairs, **fields)
        answer: proving_pb2.SubmitJobResponse = await self.proving.SubmitJob(request)
        return answer

    async def end_of(self, job_id: str) -> proving_pb2.Job:
        """Wait for the end of a job."""
        request = proving_pb2.GetJobRequest(job_id=job_id)
        request.wait.FromSeconds(60)
        answer: proving_pb2.GetJobResponse = await self.proving.GetJob(request)
        return answer.job

    async def results(self, job_id: str) -> list[proving_pb2.Partition]:
        request = proving_pb2.ListPartitionsRequest(job_id=job_id)
        return list((await self.proving.ListPartitions(request)).partitions)

    async def until_connected(self, prover_id: str, *, connected: bool = True) -> None:
        """Return once the fleet shows a prover connected (or not)."""
        calls = self.fleet.WatchFleet(fleet_pb2.WatchFleetRequest())
        async for message in calls:
            if any(
                view.hello.prover_id == prover_id and view.connected == connected
                for view in message.fleet.provers
            ):
                break
        calls.cancel()

    async def prover_view(self, prover_id: str) -> fleet_pb2.ProverView:
        """Return what the fleet says of one prover."""
        request = fleet_pb2.ListProversRequest()
        answer: fleet_pb2.ListProversResponse = await self.fleet.ListProvers(request)
        return next(view for view in answer.provers if view.hello.prover_id == prover_id)


def request_of(pairs: list[tuple[int, int]], **fields: Any) -> proving_pb2.SubmitJobRequest:
    """Return a job of products."""
    values = {
        "circuit_id": "product",
        "input_format": "wtns",
        "partitions": [
            proving_pb2.PartitionInput(inline=product_wtns(left, right)) for left, right in pairs
        ],
        **fields,
    }
    return proving_pb2.SubmitJobRequest(**values)


@asynccontextmanager
async def running(
    data_dir: Path, prover: Prover, store: Store | None = None, **settings: Any
) -> AsyncIterator[Running]:
    """Run a scheduler on a data directory."""
    settings = {**LISTEN, "check_invariants": True, "stop_grace": "2s", **settings}
    config = load(SchedulerConfig, {}, "test", data_dir=data_dir, **settings)
    scheduler = await Scheduler.start(config, store)
    try:
        async with grpc.aio.insecure_channel(
            scheduler.addresses.client, options=channel_options()
        ) as channel:
            yield Running(
                scheduler,
                proving_pb2_grpc.ProvingServiceStub(channel),
                blobs_pb2_grpc.BlobServiceStub(channel),
                fleet_pb2_grpc.FleetServiceStub(channel),
                channel,
                Catalogue(data_dir / "circuits").show("product").manifest_sha256,
                prover,
            )
        assert not scheduler.engine.broken.done(), scheduler.engine.broken.result()
    finally:
        await scheduler.stop()


def blob_ref(data: bytes) -> types_pb2.BlobRef:
    return types_pb2.BlobRef(sha256=hashlib.sha256(data).digest(), size_bytes=len(data))


async def upload(
    stub: blobs_pb2_grpc.BlobServiceStub, data: bytes, chunk_bytes: int = 1 << 20
) -> blobs_pb2.UploadResponse:
    """Upload a blob."""

    async def messages() -> AsyncIterator[blobs_pb2.UploadRequest]:
        yield blobs_pb2.UploadRequest(header=blob_ref(data))
        for at in range(0, len(data), chunk_bytes):
            yield blobs_pb2.UploadRequest(chunk=data[at : at + chunk_bytes])

    answer: blobs_pb2.UploadResponse = await stub.Upload(messages())
    return answer


@dataclass
class Refusal:
    """How a call was refused, filled in by `refused`."""

    message: str = ""
    fields: tuple[str, ...] = ()
    metadata: dict[str, str] | None = None
    retry_ns: int | None = None


@contextmanager
def refused(code: grpc.StatusCode, reason: str) -> Iterator[Refusal]:
    """Expect a call to be refused with a code and reason."""
    refusal = Refusal()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield refusal
    error = caught.value
    assert (error.code(), reason_of(error)) == (code, reason), error.details()
    refusal.message = error.details() or ""
    for detail in rpc_status.from_call(error).details:
        bad = error_details_pb2.BadRequest()
        info = error_details_pb2.ErrorInfo()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(bad):
            refusal.fields = tuple(violation.field for violation in bad.field_violations)
        if detail.Unpack(info):
            refusal.metadata = dict(info.metadata)
        if detail.Unpack(retry):
            refusal.retry_ns = retry.retry_delay.ToNanoseconds()
