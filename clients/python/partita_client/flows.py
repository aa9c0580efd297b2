"""What the client does, without doing it: each operation is a generator of steps.

A flow yields `Call`, `Upload` or `Sleep` and is sent the answer, or is thrown a `PartitaError`.
The sync and the asyncio client only perform steps, so both retry, re-arm and give up by the same
rules. Repeating is safe throughout: a submission carries a request_id, everything else is
idempotent on the server.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.message import Message

from partita.v1 import blobs_pb2, fleet_pb2, proving_pb2, types_pb2
from partita_client.contents import Content
from partita_client.errors import (
    BlobMissingError,
    InvalidRequestError,
    PartitaError,
    WaitTimeoutError,
)
from partita_client.retry import Retry

INLINE_BYTES = 64 << 10
"""The largest input that travels inside SubmitJob."""

REQUEST_BYTES = 4 << 20
"""The largest SubmitJob."""

_INLINE_TOTAL_BYTES = 2 << 20  # leaves room for statements in one request
_CALL_TIMEOUT_S = 30.0
_POLL_S = 60.0

Priority = Literal["low", "normal", "high", "critical"]
Progress = Callable[[int, int], None]
"""Told (bytes sent, bytes in all) as an upload goes on."""

_PRIORITIES: Mapping[str, types_pb2.Priority] = {
    "low": types_pb2.PRIORITY_LOW,
    "normal": types_pb2.PRIORITY_NORMAL,
    "high": types_pb2.PRIORITY_HIGH,
    "critical": types_pb2.PRIORITY_CRITICAL,
}
_STATES: Mapping[str, proving_pb2.JobState] = {
    "queued": proving_pb2.JOB_STATE_QUEUED,
    "running": proving_pb2.JOB_STATE_RUNNING,
    "completed": proving_pb2.JOB_STATE_COMPLETED,
    "failed": proving_pb2.JOB_STATE_FAILED,
    "cancelled": proving_pb2.JOB_STATE_CANCELLED,
}

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """Make a unary call and answer with its response."""

    service: Literal["proving", "blobs", "fleet"]
    method: str
    request: Message
    timeout_s: float = _CALL_TIMEOUT_S


@dataclass(frozen=True)
class Upload:
    """Send a content as a blob and answer with the UploadResponse.

    Attributes:
        content: what to send.
        sent: told the bytes of this content sent so far, from whichever thread sends them.
    """

    content: Content
    sent: Callable[[int], None]


@dataclass(frozen=True)
class Sleep:
    """Wait and answer with None."""

    seconds: float


Step = Call | Upload | Sleep
Flow = Generator[Step, Any, T]


@dataclass(frozen=True)
class Submission:
    """One job as the caller wants it.

    Attributes:
        circuit_id: the circuit.
        input_format: "wtns", "circom.json" or another that the circuit takes.
        contents: one input a partition, in the order of the proofs.
        statements: the public inputs of each partition, or None where it states them itself.
        priority: the class.
        request_id: the idempotency key.
        deadline: after this the job is of no use.
        retain: how long to keep the result.
        abandon_after: cancel this long after the last waiter has gone.
        labels: notes shown with the job.
    """

    circuit_id: str
    input_format: str
    contents: Sequence[Content]
    statements: Sequence[bytes | None] | None = None
    priority: Priority = "normal"
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    deadline: dt.datetime | None = None
    retain: dt.timedelta | None = None
    abandon_after: dt.timedelta | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def attempt(step: Call | Upload, retry: Retry) -> Flow[Any]:
    """Perform a step until it is answered or given up."""
    while True:
        try:
            answer = yield step
        except PartitaError as error:
            yield Sleep(retry.delay_s(error))
        else:
            retry.succeeded()
            return answer


def upload(
    contents: Sequence[Content], retry: Retry, progress: Progress | None = None
) -> Flow[None]:
    """Upload what the server lacks; what it has is only renewed."""
    by_digest = {content.sha256: content for content in contents}
    if not by_digest:
        return
    refs = [content.ref for content in by_digest.values()]
    request = blobs_pb2.FindMissingRequest(blobs=refs)
    answer = yield from attempt(Call("blobs", "FindMissing", request), retry)
    missing = [by_digest[ref.sha256] for ref in answer.missing]
    total_bytes = sum(content.size_bytes for content in missing)
    before_bytes = 0
    for content in missing:

        def sent(sent_bytes: int, before_bytes: int = before_bytes) -> None:
            if progress is not None:
                progress(before_bytes + sent_bytes, total_bytes)

        yield from attempt(Upload(content, sent), retry)
        before_bytes += content.size_bytes


def submit(
    submission: Submission, retry: Retry, progress: Progress | None = None
) -> Flow[proving_pb2.SubmitJobResponse]:
    """Upload what is large and submit; if inputs were dropped in between, once more."""
    request, large = submit_request(submission)
    call = Call("proving", "SubmitJob", request)
    yield from upload(large, retry, progress)
    try:
        answer: proving_pb2.SubmitJobResponse = yield from attempt(call, retry)
    except BlobMissingError:
        yield from upload(large, retry, progress)
        answer = yield from attempt(call, retry)
    return answer


def submit_request(
    submission: Submission,
) -> tuple[proving_pb2.SubmitJobRequest, list[Content]]:
    """Return the request and the contents that must be uploaded before it.

    Raises:
        InvalidRequestError: an argument is wrong, or the request is too large even so.
    """
    if submission.priority not in _PRIORITIES:
        raise InvalidRequestError(
            f"priority: {submission.priority!r} is not one of {', '.join(_PRIORITIES)}"
        )
    statements = submission.statements or [None] * len(submission.contents)
    if len(statements) != len(submission.contents):
        raise InvalidRequestError(
            f"statements: {len(statements)} for {len(submission.contents)} inputs; "
            "give one an input, None where the input states it itself"
        )
    request = proving_pb2.SubmitJobRequest(
        request_id=submission.request_id,
        circuit_id=submission.circuit_id,
        input_format=submission.input_format,
        priority=_PRIORITIES[submission.priority],
        deadline=_timestamp(submission.deadline),
        retain=_duration(submission.retain),
        abandon_after=_duration(submission.abandon_after),
        labels=submission.labels,
    )
    large: list[Content] = []
    inline_bytes = 0
    for content, statement in zip(submission.contents, statements, strict=True):
        partition = proving_pb2.PartitionInput(statement=statement)
        if (
            content.size_bytes > INLINE_BYTES
            or inline_bytes + content.size_bytes > _INLINE_TOTAL_BYTES
        ):
            partition.blob.CopyFrom(content.ref)
            large.append(content)
        else:
            partition.inline = content.read()
            inline_bytes += content.size_bytes
        request.partitions.append(partition)
    if request.ByteSize() > REQUEST_BYTES:
        raise InvalidRequestError(
            f"statements: the request would have {request.ByteSize()} bytes, the most is "
            f"{REQUEST_BYTES}; submit fewer partitions a job"
        )
    return request, large


def get(job_id: str, wait_s: float, retry: Retry) -> Flow[proving_pb2.Job]:
    """Return a job, after `wait_s` at the latest."""
    request = proving_pb2.GetJobRequest(job_id=job_id)
    if wait_s > 0:
        request.wait.CopyFrom(_seconds(wait_s))
    call = Call("proving", "GetJob", request, timeout_s=wait_s + _CALL_TIMEOUT_S)
    answer = yield from attempt(call, retry)
    job: proving_pb2.Job = answer.job
    return job


def wait(
    job_id: str, timeout_s: float | None, clock: Callable[[], float], retry: Retry
) -> Flow[proving_pb2.Job]:
    """Return the terminal job: a long poll, armed again for as long as it takes.

    Raises:
        WaitTimeoutError: the time is up; the job goes on.
    """
    end_s = None if timeout_s is None else clock() + timeout_s
    while True:
        left_s = _POLL_S if end_s is None else max(0.0, end_s - clock())
        job = yield from get(job_id, min(left_s, _POLL_S), retry)
        if is_terminal(job):
            return job
        if end_s is not None and clock() >= end_s:
            error = WaitTimeoutError(f"job {job_id} is not done after {timeout_s:g} s; it goes on")
            error.job = job
            raise error


def partitions(job_id: str, retry: Retry) -> Flow[list[proving_pb2.Partition]]:
    """Return all partitions of a job with their proofs and statements."""
    found: list[proving_pb2.Partition] = []
    token = ""
    while True:
        request = proving_pb2.ListPartitionsRequest(job_id=job_id, page_token=token)
        answer = yield from attempt(Call("proving", "ListPartitions", request), retry)
        found += answer.partitions
        token = answer.next_page_token
        if not token:
            return found


def add_circuit(
    circuit_id: str, manifest_json: str, files: Sequence[Content], retry: Retry
) -> Flow[fleet_pb2.Circuit]:
    """Upload the files of a circuit and add it."""
    request = fleet_pb2.AddCircuitRequest(circuit_id=circuit_id, manifest_json=manifest_json)
    yield from upload(files, retry)
    answer = yield from attempt(Call("fleet", "AddCircuit", request), retry)
    circuit: fleet_pb2.Circuit = answer.circuit
    return circuit


def is_terminal(job: proving_pb2.Job) -> bool:
    """Whether the job has ended: COMPLETED, FAILED or CANCELLED."""
    return job.state in (
        proving_pb2.JOB_STATE_COMPLETED,
        proving_pb2.JOB_STATE_FAILED,
        proving_pb2.JOB_STATE_CANCELLED,
    )


def state_name(job: proving_pb2.Job) -> str:
    """The job's state as one lower-case word."""
    name: str = proving_pb2.JobState.Name(job.state)
    return name.removeprefix("JOB_STATE_").lower()


def list_jobs_request(
    states: Sequence[str], circuit_id: str, request_id: str, page_token: str
) -> proving_pb2.ListJobsRequest:
    """Return the request for one page of jobs.

    Raises:
        InvalidRequestError: a state is not one.
    """
    for state in states:
        if state not in _STATES:
            raise InvalidRequestError(f"states: {state!r} is not one of {', '.join(_STATES)}")
    return proving_pb2.ListJobsRequest(
        states=[_STATES[state] for state in states],
        circuit_id=circuit_id,
        request_id=request_id,
        page_token=page_token,
    )


def _timestamp(moment: dt.datetime | None) -> timestamp_pb2.Timestamp | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise InvalidRequestError(f"deadline: {moment} has no time zone; give one, such as UTC")
    stamp = timestamp_pb2.Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def _duration(span: dt.timedelta | None) -> duration_pb2.Duration | None:
    if span is None:
        return None
    value = duration_pb2.Duration()
    value.FromTimedelta(span)
    return value


def _seconds(seconds: float) -> duration_pb2.Duration:
    value = duration_pb2.Duration()
    value.FromNanoseconds(int(seconds * 1e9))
    return value
