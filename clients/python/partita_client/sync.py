"""The blocking client: one channel, usable from several threads at once.

Calls are repeated across restarts of the scheduler until the retry policy gives up; see `flows`
for the rules. Jobs, partitions and circuits are the wire's own messages (`partita.v1`).
"""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from partita.v1 import fleet_pb2, proving_pb2, types_pb2
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
    from collections.abc import Callable, Generator, Iterator, Sequence
    from types import TracebackType
    from typing import Self, Unpack

    from partita_client.submission import SubmitOptions

T = TypeVar("T")


class Client:
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
            grpc.insecure_channel(address, OPTIONS)
            if credentials is None
            else grpc.secure_channel(address, credentials, OPTIONS)
        )
        self._stubs = {name: stub(self._channel) for name, stub in STUBS.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel; calls in flight end."""
        self._channel.close()

    def server_info(
        self, *, give_up_after_s: float | None = None
    ) -> proving_pb2.GetServerInfoResponse:
        """Return limits, build and epoch of the server.

        Args:
            give_up_after_s: for this call instead of the policy's.
        """
        retry = self._retry(give_up_after_s)
        request = proving_pb2.GetServerInfoRequest()
        answer: proving_pb2.GetServerInfoResponse = self._run(
            flows.attempt(flows.Call("proving", "GetServerInfo", request), retry)
        )
        return answer

    def upload(self, source: Source, *, progress: flows.Progress | None = None) -> Content:
        """Store a blob unless the server has it, and return its name.

        Raises:
            InvalidRequestError: the file cannot be read, changed while it was sent, or is larger
                than the server takes.
        """
        content = content_of(source)
        self._run(flows.upload([content], self._retry(), progress))
        return content

    def submit(
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
        contents = [content_of(source) for source in inputs]
        submission = flows.Submission(circuit_id, input_format, contents, **options)
        return self._run(flows.submit(submission, self._retry(), progress))

    def get(self, job_id: str, wait_s: float = 0.0) -> proving_pb2.Job:
        """Return a job; with `wait_s`, when it is terminal or the wait is over."""
        return self._run(flows.get(job_id, wait_s, self._retry()))

    def wait(self, job_id: str, timeout_s: float | None = None) -> proving_pb2.Job:
        """Return the job when it is terminal, across restarts of the scheduler.

        Raises:
            WaitTimeoutError: `timeout_s` is over; the job goes on.
        """
        return self._run(flows.wait(job_id, timeout_s, time.monotonic, self._retry()))

    def prove(
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
        submitted = self.submit(circuit_id, inputs, input_format, **options)
        job = self.wait(submitted.job.job_id, timeout_s)
        if job.state != proving_pb2.JOB_STATE_COMPLETED:
            raise JobFailedError.of(job)
        return self.partitions(job.job_id)

    def partitions(self, job_id: str) -> list[proving_pb2.Partition]:
        """Return the partitions of a job in order, with proofs and statements."""
        return self._run(flows.partitions(job_id, self._retry()))

    def jobs(
        self, *, states: Sequence[str] = (), circuit_id: str = "", request_id: str = ""
    ) -> Iterator[proving_pb2.Job]:
        """Yield the jobs that match, oldest first, without partitions.

        Args:
            states: of "queued", "running", "completed", "failed", "cancelled"; empty = all.
            circuit_id: only of this circuit.
            request_id: only with this one.
        """
        token = ""
        while True:
            request = flows.list_jobs_request(states, circuit_id, request_id, token)
            answer = self._call("proving", "ListJobs", request)
            yield from answer.jobs
            token = answer.next_page_token
            if not token:
                return

    def cancel(self, job_id: str, reason: str = "") -> proving_pb2.Job:
        """Cancel a job unless it has ended, and return it."""
        request = proving_pb2.CancelJobRequest(job_id=job_id, reason=reason)
        job: proving_pb2.Job = self._call("proving", "CancelJob", request).job
        return job

    def retry(self, job_id: str) -> proving_pb2.Job:
        """Run a FAILED or CANCELLED job again and return the new job; PROVED partitions are kept.

        Called twice, both calls return one job.

        Raises:
            BlobMissingError: inputs that are needed again are gone; submit the job instead.
            InvalidRequestError: NOT_RETRYABLE: the job is in another state.
            NotFoundError: there is no such job.
        """
        request = proving_pb2.RetryJobRequest(job_id=job_id)
        answer = self._call("proving", "RetryJob", request)
        job: proving_pb2.Job = answer.job
        return job

    def watch(self, job_id: str) -> Generator[proving_pb2.Job, None, None]:
        """Yield snapshots of a job until the terminal one, across restarts of the scheduler."""
        request = proving_pb2.WatchJobRequest(job_id=job_id)
        with closing(self._follow(self._stubs["proving"].WatchJob, request)) as answers:
            for answer in answers:
                yield answer.job
                if flows.is_terminal(answer.job):
                    return

    def fleet(self) -> fleet_pb2.FleetSnapshot:
        """Return the fleet and the queue as they are now."""
        with closing(self.watch_fleet()) as snapshots:
            return next(snapshots)

    def watch_fleet(self) -> Generator[fleet_pb2.FleetSnapshot, None, None]:
        """Yield snapshots of the fleet for ever, across restarts of the scheduler."""
        request = fleet_pb2.WatchFleetRequest()
        with closing(self._follow(self._stubs["fleet"].WatchFleet, request)) as answers:
            for answer in answers:
                yield answer.fleet

    def set_prover_mode(
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
        answer = self._call("fleet", "SetProverMode", request)
        prover: fleet_pb2.ProverView = answer.prover
        return prover

    def set_residency(
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
        answer = self._call("fleet", "SetResidency", request)
        changed: types_pb2.Bytes = answer.changed
        return changed

    def circuits(self) -> list[fleet_pb2.Circuit]:
        """Return the circuits that the scheduler knows."""
        request = fleet_pb2.ListCircuitsRequest()
        return list(self._call("fleet", "ListCircuits", request).circuits)

    def add_circuit(
        self, circuit_id: str, manifest_json: str, files: Sequence[Source]
    ) -> fleet_pb2.Circuit:
        """Upload the files of a circuit, add it and return it.

        Args:
            circuit_id: its name.
            manifest_json: its manifest, canonical JSON.
            files: what the manifest names by digest, in any order.
        """
        contents = [content_of(source) for source in files]
        return self._run(flows.add_circuit(circuit_id, manifest_json, contents, self._retry()))

    def remove_circuit(self, circuit_id: str) -> None:
        """Remove a circuit.

        Raises:
            InvalidRequestError: CIRCUIT_IN_USE: an open job names it.
            NotFoundError: there is none of this name.
        """
        request = fleet_pb2.RemoveCircuitRequest(circuit_id=circuit_id)
        self._call("fleet", "RemoveCircuit", request)

    def _retry(self, give_up_after_s: float | None = None) -> Retry:
        policy = self._policy
        if give_up_after_s is not None:
            policy = RetryPolicy(give_up_after_s, policy.first_s, policy.most_s)
        return Retry(policy, time.monotonic, random.random)

    def _call(self, service: Any, method: str, request: Any) -> Any:
        return self._run(flows.attempt(flows.Call(service, method, request), self._retry()))

    def _run(self, flow: flows.Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._perform(step)
                except PartitaError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, step: flows.Step) -> Any:
        if isinstance(step, flows.Sleep):
            time.sleep(step.seconds)
            return None
        messages = UploadMessages(step) if isinstance(step, flows.Upload) else None
        try:
            if messages is not None:
                return self._stubs["blobs"].Upload(iter(messages))
            assert isinstance(step, flows.Call)
            method = getattr(self._stubs[step.service], step.method)
            return method(step.request, timeout=step.timeout_s)
        except grpc.RpcError as error:
            if messages is not None and messages.failure is not None:
                raise messages.failure from error
            raise error_of(error, self.address) from error

    def _follow(self, method: Callable[[Any], Any], request: Any) -> Generator[Any, None, None]:
        retry = self._retry()
        while True:
            stream = method(request)
            try:
                for answer in stream:
                    retry.succeeded()
                    yield answer
                # A stream never ends by itself before the caller stops. But the blocking stack of
                # gRPC can lose a message that comes together with the end: calling again mends it.
                failure: PartitaError = UnavailableError(f"{self.address}: the stream ended early")
            except grpc.RpcError as error:
                failure = error_of(error, self.address)
            finally:
                stream.cancel()
            time.sleep(retry.delay_s(failure))
