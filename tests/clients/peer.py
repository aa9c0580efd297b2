"""A scheduler's public services in memory, for tests of clients: the wire without the proving.

It keeps blobs and jobs, answers as wire.md says, and does what a test tells it: fail the next
calls, end streams, forget blobs, be stopped and started again on the same address.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc

from partita.service.grpcio import RpcError, Server
from partita.service.grpcio import abort as abort_call
from partita.v1 import (
    blobs_pb2,
    blobs_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    proving_pb2,
    proving_pb2_grpc,
    types_pb2,
)

SERVICES = ["partita.v1.ProvingService", "partita.v1.BlobService", "partita.v1.FleetService"]


def unavailable() -> RpcError:
    """What a scheduler that is stopping answers."""
    return RpcError(grpc.StatusCode.UNAVAILABLE, "DRAINING", "come back later")


class Peer:
    """The state behind the services.

    Attributes:
        calls: how often each method was called.
        failures: method name to errors that its next calls end with.
        blobs, jobs, results: what is kept.
        changed: set whenever a job changed.
        forgetful: FindMissing says that every blob is missing, as if it had come since.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = defaultdict(int)
        self.failures: dict[str, list[RpcError]] = defaultdict(list)
        self.blobs: dict[bytes, bytes] = {}
        self.jobs: dict[str, proving_pb2.Job] = {}
        self.results: dict[str, list[proving_pb2.Partition]] = defaultdict(list)
        self.submissions: list[proving_pb2.SubmitJobRequest] = []
        self.circuits: list[fleet_pb2.Circuit] = []
        self.fleet = fleet_pb2.FleetSnapshot(epoch=1)
        self.residencies: list[fleet_pb2.SetResidencyRequest] = []
        self.changed = asyncio.Event()
        self.stream_cut_after: int | None = None
        self.page = 2
        self.forgetful = False
        self._entered = asyncio.Condition()

    async def called(self, method: str, times: int = 1) -> None:
        """Return once a method was called so often."""
        async with asyncio.timeout(60), self._entered:
            await self._entered.wait_for(lambda: self.calls[method] >= times)

    async def enter(self, method: str, context: Any) -> None:
        self.calls[method] += 1
        async with self._entered:
            self._entered.notify_all()
        if self.failures[method]:
            await abort_call(context, self.failures[method].pop(0))

    def end_job(
        self,
        job_id: str,
        state: proving_pb2.JobState = proving_pb2.JOB_STATE_COMPLETED,
        failure: types_pb2.Failure | None = None,
    ) -> None:
        job = self.jobs[job_id]
        job.state = state
        if failure is not None:
            job.failure.CopyFrom(failure)
        if state == proving_pb2.JOB_STATE_COMPLETED:
            job.partitions_done = job.partitions_total
        self.changed.set()
        self.changed = asyncio.Event()

    async def job(self, job_id: str, context: Any) -> proving_pb2.Job:
        if job_id not in self.jobs:
            text = f"job_id: no job {job_id!r}"
            await abort_call(context, RpcError(grpc.StatusCode.NOT_FOUND, "JOB_UNKNOWN", text))
        return self.jobs[job_id]


class _Proving(proving_pb2_grpc.ProvingServiceServicer):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def GetServerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("GetServerInfo", context)
        return proving_pb2.GetServerInfoResponse(epoch=7, max_partitions=1024)

    async def SubmitJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        peer = self.peer
        await peer.enter("SubmitJob", context)
        peer.submissions.append(request)
        for job in peer.jobs.values():
            if request.request_id and job.request_id == request.request_id:
                return proving_pb2.SubmitJobResponse(job=job, attached=True)
        missing = [p.blob for p in request.partitions if p.HasField("blob")]
        missing = [ref for ref in missing if ref.sha256 not in peer.blobs]
        if missing:
            names = ", ".join(ref.sha256.hex() for ref in missing)
            error = RpcError(grpc.StatusCode.FAILED_PRECONDITION, "BLOB_MISSING", names)
            await abort_call(context, error)
        job = proving_pb2.Job(
            job_id=f"job-{len(peer.jobs)}",
            request_id=request.request_id,
            circuit_id=request.circuit_id,
            priority=request.priority,
            state=proving_pb2.JOB_STATE_QUEUED,
            partitions_total=len(request.partitions),
            partitions=[proving_pb2.Partition(index=i) for i in range(len(request.partitions))],
        )
        peer.jobs[job.job_id] = job
        return proving_pb2.SubmitJobResponse(job=job)

    async def GetJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("GetJob", context)
        job = await self.peer.job(request.job_id, context)
        wait_s = request.wait.seconds + request.wait.nanos / 1e9
        if wait_s and job.state < proving_pb2.JOB_STATE_COMPLETED:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.peer.changed.wait(), wait_s)
        return proving_pb2.GetJobResponse(job=job)

    async def ListJobs(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("ListJobs", context)
        jobs = [
            j for j in self.peer.jobs.values() if not request.states or j.state in request.states
        ]
        start = int(request.page_token or 0)
        end = start + self.peer.page
        return proving_pb2.ListJobsResponse(
            jobs=jobs[start:end], next_page_token=str(end) if end < len(jobs) else ""
        )

    async def ListPartitions(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("ListPartitions", context)
        await self.peer.job(request.job_id, context)
        rows = self.peer.results[request.job_id]
        start = int(request.page_token or 0)
        end = start + self.peer.page
        return proving_pb2.ListPartitionsResponse(
            partitions=rows[start:end], next_page_token=str(end) if end < len(rows) else ""
        )

    async def WatchJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("WatchJob", context)
        job = await self.peer.job(request.job_id, context)
        sent = 0
        while True:
            changed = self.peer.changed
            yield proving_pb2.WatchJobResponse(job=job)
            sent += 1
            if job.state >= proving_pb2.JOB_STATE_COMPLETED:
                return
            if self.peer.stream_cut_after == sent:
                self.peer.stream_cut_after = None
                await abort_call(context, unavailable())
            await changed.wait()

    async def CancelJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("CancelJob", context)
        job = await self.peer.job(request.job_id, context)
        self.peer.end_job(job.job_id, proving_pb2.JOB_STATE_CANCELLED)
        return proving_pb2.CancelJobResponse(job=job)

    async def RetryJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        peer = self.peer
        await peer.enter("RetryJob", context)
        old = await peer.job(request.job_id, context)
        if old.state < proving_pb2.JOB_STATE_FAILED:
            text = f"job {old.job_id} is not over"
            error = RpcError(grpc.StatusCode.FAILED_PRECONDITION, "NOT_RETRYABLE", text)
            await abort_call(context, error)
        new_id = f"{old.job_id}-again"
        if new_id not in peer.jobs:
            job = proving_pb2.Job(state=proving_pb2.JOB_STATE_QUEUED)
            job.partitions_total = old.partitions_total
            job.partitions.extend(old.partitions)
            job.job_id = new_id
            peer.jobs[new_id] = job
        return proving_pb2.RetryJobResponse(job=peer.jobs[new_id])


class _Blobs(blobs_pb2_grpc.BlobServiceServicer):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def FindMissing(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("FindMissing", context)
        known = () if self.peer.forgetful else self.peer.blobs
        missing = [ref for ref in request.blobs if ref.sha256 not in known]
        return blobs_pb2.FindMissingResponse(missing=missing)

    async def Upload(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802
        header = (await anext(request_iterator)).header
        await self.peer.enter("Upload", context)
        if header.sha256 in self.peer.blobs:
            return blobs_pb2.UploadResponse(blob=header)
        data = b""
        async for message in request_iterator:
            assert 0 < len(message.chunk) <= 1 << 20
            data += message.chunk
        if hashlib.sha256(data).digest() != header.sha256 or len(data) != header.size_bytes:
            error = RpcError(
                grpc.StatusCode.INVALID_ARGUMENT,
                "BAD_INPUT",
                "header.sha256: another content",
                fields={"header.sha256": "another content"},
            )
            await abort_call(context, error)
        self.peer.blobs[header.sha256] = data
        return blobs_pb2.UploadResponse(blob=header)


class _Fleet(fleet_pb2_grpc.FleetServiceServicer):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def WatchFleet(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("WatchFleet", context)
        while True:
            changed = self.peer.changed
            yield fleet_pb2.WatchFleetResponse(fleet=self.peer.fleet)
            await changed.wait()

    async def ListCircuits(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("ListCircuits", context)
        return fleet_pb2.ListCircuitsResponse(circuits=self.peer.circuits)

    async def SetProverMode(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("SetProverMode", context)
        for view in self.peer.fleet.provers:
            if view.hello.prover_id == request.prover_id:
                view.mode = request.mode or view.mode
                view.trust = request.trust or view.trust
                view.reason = request.reason
                return fleet_pb2.SetProverModeResponse(prover=view)
        text = f"no prover is called {request.prover_id!r}"
        error = RpcError(grpc.StatusCode.NOT_FOUND, "PROVER_UNKNOWN", text)
        return await abort_call(context, error)

    async def SetResidency(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("SetResidency", context)
        self.peer.residencies.append(request)
        return fleet_pb2.SetResidencyResponse(changed=types_pb2.Bytes(host=7))

    async def AddCircuit(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.peer.enter("AddCircuit", context)
        circuit = fleet_pb2.Circuit(
            circuit_id=request.circuit_id, manifest_json=request.manifest_json
        )
        self.peer.circuits.append(circuit)
        return fleet_pb2.AddCircuitResponse(circuit=circuit)


@asynccontextmanager
async def serve(peer: Peer, address: str = "127.0.0.1:0") -> AsyncGenerator[str, None]:
    """Serve the peer; yields the real address, and stops at once at the end."""
    server = Server(SERVICES)
    proving_pb2_grpc.add_ProvingServiceServicer_to_server(_Proving(peer), server.grpc)
    blobs_pb2_grpc.add_BlobServiceServicer_to_server(_Blobs(peer), server.grpc)
    fleet_pb2_grpc.add_FleetServiceServicer_to_server(_Fleet(peer), server.grpc)
    real = server.bind(address)
    await server.start()
    await server.serving(True)
    try:
        yield real
    finally:
        await server.stop(0)
