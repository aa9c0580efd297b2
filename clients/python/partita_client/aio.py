"""The asyncio client: one channel in one event loop.

Calls are repeated across restarts of the scheduler until the retry policy gives up; see `flows`
for the rules. Jobs, partitions and circuits are the wire's own messages (`partita.v1`).
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from partita.v1 import blobs_pb2, fleet_pb2, proving_pb2, types_pb2
from partita_client import flows, steering
from partita_client.channel import DEFAULT_ADDRESS, OPTIONS, STUBS
from partita_client.contents import Content, Source, content_of
from partita_client.errors import (
    JobFailedError,
    PartitaError,
    UnavailableError,
    error_of,
)
from partita_client.retry import Retry, RetryPolicy
from partita_client.uploads import UploadMessages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from types import TracebackType
    from typing import Self, Unpack

    from partita_client.submission import SubmitOptions

T = TypeVar("T")


class AsyncClient:
    """A connection to one scheduler.

    Args:
        address: "host:port" or "unix:///path".
        retry: how long to try again when the scheduler cannot be reached.
        credentials: for TLS; None = plaintext.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        retry: RetryPolicy | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self.address = address
        self._policy = retry or RetryPolicy()
        self._channel = (
            grpc.aio.insecure_channel(address, OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, OPTIONS)
        )
        self._credentials = credentials
        self._upload_channel: grpc.Channel | None = None
        self._stubs = {name: stub(self._channel) for name, stub in STUBS.items()}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel; calls in flight end."""
        await self._channel.close()
        if self._upload_channel is not None:
            self._upload_channel.close()

    async def server_info(
        self, *, give_up_after_s: float | None = None
    ) -> proving_pb2.GetServerInfoResponse:
        """Return limits, build and epoch of the server.

        Args:
            give_up_after_s: for this call instead of the policy's.
        """
        retry = self._retry(give_up_after_s)
        request = proving_pb2.GetServerInfoRequest()
        answer: proving_pb2.GetServerInfoResponse = await self._run(
            flows.attempt(flows.Call("proving", "GetServerInfo", request), retry)
        )
        return answer

    async def upload(self, source: Source, *, progress: flows.Progress | None = None) -> Content:
        """Store a blob unless the server has it, and return its name.

        Raises:
            InvalidRequestError: the file cannot be read, changed while it was sent, or is larger
                than the server takes.
        """
        content = await asyncio.to_thread(content_of, source)
        await self._run(flows.upload([content], self._retry(), progress))
        return content

    async def submit(
        self,
        circuit_id: str,
        inputs: Sequence[Source],
        input_format: str,
        *,
        progress: flows.Progress | None = None,
        **options: Unpack[SubmitOptions],
    ) -> proving_pb2.SubmitJobResponse:
        """Submit a job and return it once it is durable; what is large is uploaded first.

        Args:
            circuit_id: the circuit.
            inputs: one a partition, in the order of the proofs.
            input_format: "wtns" or "circom.json".
            progress: told how the uploads go on.
            options: see `SubmitOptions`.
        """
        contents = await asyncio.to_thread(_contents, inputs)
        submission = flows.Submission(circuit_id, input_format, contents, **options)
        return await self._run(flows.submit(submission, self._retry(), progress))

    async def get(self, job_id: str, wait_s: float = 0.0) -> proving_pb2.Job:
        """Return a job; with `wait_s`, when it is terminal or the wait is over."""
        return await self._run(flows.get(job_id, wait_s, self._retry()))

    async def wait(self, job_id: str, timeout_s: float | None = None) -> proving_pb2.Job:
        """Return the job when it is terminal, across restarts of the scheduler.

        Raises:
            WaitTimeoutError: `timeout_s` is over; the job goes on.
        """
        return await self._run(flows.wait(job_id, timeout_s, time.monotonic, self._retry()))

    async def prove(
        self,
        circuit_id: str,
        inputs: Sequence[Source],
        input_format: str,
        *,
        timeout_s: float | None = None,
        **options: Unpack[SubmitOptions],
    ) -> list[proving_pb2.Partition]:
        """Submit a job, wait for it and return its partitions with their proofs.

        Raises:
            JobFailedError: the job failed or was cancelled.
        """
        submitted = await self.submit(circuit_id, inputs, input_format, **options)
        job = await self.wait(submitted.job.job_id, timeout_s)
        if job.state != proving_pb2.JOB_STATE_COMPLETED:
            raise JobFailedError.of(job)
        return await self.partitions(job.job_id)

    async def partitions(self, job_id: str) -> list[proving_pb2.Partition]:
        """Return the partitions of a job in order, with proofs and statements."""
        return await self._run(flows.partitions(job_id, self._retry()))

    async def jobs(
        self, *, states: Sequence[str] = (), circuit_id: str = "", request_id: str = ""
    ) -> AsyncGenerator[proving_pb2.Job, None]:
        """Yield the jobs that match, oldest first, without partitions.

        Args:
            states: of "queued", "running", "completed", "failed", "cancelled"; empty = all.
            circuit_id: only of this circuit.
            request_id: only with this one.
        """
        token = ""
        while True:
            request = flows.list_jobs_request(states, circuit_id, request_id, token)
            answer = await self._call("proving", "ListJobs", request)
            for job in answer.jobs:
                yield job
            token = answer.next_page_token
            if not token:
                return

    async def cancel(self, job_id: str, reason: str = "") -> proving_pb2.Job:
        """Cancel a job unless it has ended, and return it."""
        request = proving_pb2.CancelJobRequest(job_id=job_id, reason=reason)
        job: proving_pb2.Job = (await self._call("proving", "CancelJob", request)).job
        return job

    async def retry(self, job_id: str) -> proving_pb2.Job:
        """Run a FAILED or CANCELLED job again and return the new job; PROVED partitions are kept.

        Called twice, both calls return one job.

        Raises:
            BlobMissingError: inputs that are needed again are gone; submit the job instead.
            InvalidRequestError: NOT_RETRYABLE: the job is in another state.
            NotFoundError: there is no such job.
        """
        request = proving_pb2.RetryJobRequest(job_id=job_id)
        answer = await self._call("proving", "RetryJob", request)
        job: proving_pb2.Job = answer.job
        return job

    async def watch(self, job_id: str) -> AsyncGenerator[proving_pb2.Job, None]:
        """Yield snapshots of a job until the terminal one, across restarts of the scheduler."""
        request = proving_pb2.WatchJobRequest(job_id=job_id)
        async with aclosing(self._follow(self._stubs["proving"].WatchJob, request)) as answers:
            async for answer in answers:
                yield answer.job
                if flows.is_terminal(answer.job):
                    return

    async def fleet(self) -> fleet_pb2.FleetSnapshot:
        """Return the fleet and the queue as they are now."""
        async with aclosing(self.watch_fleet()) as snapshots:
            return await anext(snapshots)

    async def watch_fleet(self) -> AsyncGenerator[fleet_pb2.FleetSnapshot, None]:
        """Yield snapshots of the fleet for ever, across restarts of the scheduler."""
        request = fleet_pb2.WatchFleetRequest()
        async with aclosing(self._follow(self._stubs["fleet"].WatchFleet, request)) as answers:
            async for answer in answers:
                yield answer.fleet

    async def set_prover_mode(
        self,
        prover_id: str,
        *,
        mode: str | None = None,
        trust: str | None = None,
        reason: str = "",
    ) -> fleet_pb2.ProverView:
        """Set what a prover may do, and return it; what is None stays as it is.

        Args:
            prover_id: which.
            mode: "active", "cordoned" (takes nothing new) or "drained" (also hands back).
            trust: "trusted", "quarantined" or "probation".
            reason: why, for people.

        Raises:
            NotFoundError: PROVER_UNKNOWN.
        """
        request = steering.prover_mode_request(prover_id, mode, trust, reason)
        answer = await self._call("fleet", "SetProverMode", request)
        prover: fleet_pb2.ProverView = answer.prover
        return prover

    async def set_residency(
        self, circuit_id: str, residency: str, *, prover_id: str = ""
    ) -> types_pb2.Bytes:
        """Pin a circuit's key, evict it once, or leave it to the scheduler.

        Args:
            circuit_id: whose key.
            residency: "auto", "pinned" or "evicted".
            prover_id: on one prover; empty = on all, also those that come later.

        Returns:
            The memory that is pinned, unpinned or given up by it.

        Raises:
            NotFoundError: UNKNOWN_CIRCUIT or PROVER_UNKNOWN.
        """
        request = steering.residency_request(circuit_id, residency, prover_id)
        answer = await self._call("fleet", "SetResidency", request)
        changed: types_pb2.Bytes = answer.changed
        return changed

    async def circuits(self) -> list[fleet_pb2.Circuit]:
        """Return the circuits that the scheduler knows."""
        request = fleet_pb2.ListCircuitsRequest()
        return list((await self._call("fleet", "ListCircuits", request)).circuits)

    async def add_circuit(
        self, circuit_id: str, manifest_json: str, files: Sequence[Source]
    ) -> fleet_pb2.Circuit:
        """Upload the files of a circuit, add it and return it.

        Args:
            circuit_id: its name.
            manifest_json: its manifest, canonical JSON.
            files: what the manifest names by digest, in any order.
        """
        contents = await asyncio.to_thread(_contents, files)
        return await self._run(
            flows.add_circuit(circuit_id, manifest_json, contents, self._retry())
        )

    async def remove_circuit(self, circuit_id: str) -> None:
        """Remove a circuit.

        Raises:
            InvalidRequestError: CIRCUIT_IN_USE: an open job names it.
            NotFoundError: there is none of this name.
        """
        request = fleet_pb2.RemoveCircuitRequest(circuit_id=circuit_id)
        await self._call("fleet", "RemoveCircuit", request)

    def _retry(self, give_up_after_s: float | None = None) -> Retry:
        policy = self._policy
        if give_up_after_s is not None:
            policy = RetryPolicy(give_up_after_s, policy.first_s, policy.most_s)
        return Retry(policy, time.monotonic, random.random)

    async def _call(self, service: Any, method: str, request: Any) -> Any:
        return await self._run(flows.attempt(flows.Call(service, method, request), self._retry()))

    async def _run(self, flow: flows.Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    answer = await self._perform(step)
                except PartitaError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform(self, step: flows.Step) -> Any:
        if isinstance(step, flows.Sleep):
            await asyncio.sleep(step.seconds)
            return None
        try:
            if isinstance(step, flows.Upload):
                return await self._upload(step)
            method = getattr(self._stubs[step.service], step.method)
            return await method(step.request, timeout=step.timeout_s)
        except grpc.RpcError as error:
            raise error_of(error, self.address) from error

    async def _upload(self, step: flows.Upload) -> blobs_pb2.UploadResponse:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        messages = UploadMessages(step)
        call = self._uploads().Upload.future(iter(messages))

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        call.add_done_callback(tell)
        try:
            await ended.wait()
            answer: blobs_pb2.UploadResponse = call.result()
            return answer
        except grpc.RpcError as error:
            if messages.failure is not None:
                raise messages.failure from error
            raise
        finally:
            call.cancel()

    def _uploads(self) -> Any:
        """The blob stub of the blocking stack, on a channel of its own; see `uploads`."""
        if self._upload_channel is None:
            self._upload_channel = (
                grpc.insecure_channel(self.address, OPTIONS)
                if self._credentials is None
                else grpc.secure_channel(self.address, self._credentials, OPTIONS)
            )
        return STUBS["blobs"](self._upload_channel)

    async def _follow(
        self, method: Callable[[Any], Any], request: Any
    ) -> AsyncGenerator[Any, None]:
        retry = self._retry()
        while True:
            stream = method(request)
            try:
                async for answer in stream:
                    retry.succeeded()
                    yield answer
                # The caller stops at the last message it wants: a stream that ended before was cut.
                failure: PartitaError = UnavailableError(f"{self.address}: the stream ended early")
            except grpc.RpcError as error:
                failure = error_of(error, self.address)
            finally:
                stream.cancel()
            await asyncio.sleep(retry.delay_s(failure))


def _contents(sources: Sequence[Source]) -> list[Content]:
    return [content_of(source) for source in sources]
