"""Errors of the client: one small tree, made from the google.rpc details of an answer.

Every error has the status code's name, the stable `reason` (UPPER_SNAKE, empty if the answer came
from no Partita server), the fields that are wrong and how long to wait before another try. Catch
`PartitaError` for all of them; nothing else is raised for what a server or the network does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from partita.v1 import proving_pb2


@dataclass(eq=False)
class PartitaError(Exception):
    """An answer that is an error.

    Attributes:
        message: text for people: the field, the value and what to change.
        code: the name of the gRPC status code, such as "NOT_FOUND".
        reason: the stable word for machines, such as "UNKNOWN_CIRCUIT"; "" if there is none.
        fields: field path to what is wrong with it.
        metadata: more about the reason.
        retry_after_s: seconds to wait before the same call can work; None = it does not help or
            nobody knows.
    """

    message: str
    code: str = ""
    reason: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None

    def __str__(self) -> str:
        return self.message


class InvalidRequestError(PartitaError):
    """The request is wrong or does not fit the server's state; mend it before another try."""


class NotFoundError(PartitaError):
    """No such job, circuit, prover or blob."""


class BlobMissingError(InvalidRequestError):
    """The server lacks an input; it was dropped since it was uploaded."""


class OverloadedError(PartitaError):
    """The server is full; `retry_after_s` says when to try again."""


class UnavailableError(PartitaError):
    """The server cannot be reached, is draining or did not answer in time."""


class ServerError(PartitaError):
    """The server failed at something that is not the caller's fault."""


class JobFailedError(PartitaError):
    """The job ended without its proofs.

    Attributes:
        job: the terminal job; its failure and its partitions say why.
    """

    job: proving_pb2.Job

    @classmethod
    def of(cls, job: proving_pb2.Job) -> JobFailedError:
        """Return the error of a FAILED or CANCELLED job."""
        failure = job.failure
        text = f"{failure.reason}: {failure.detail}" if failure.reason else "it was cancelled"
        error = cls(f"job {job.job_id} has no proofs: {text}", reason=failure.reason)
        error.job = job
        return error


class WaitTimeoutError(PartitaError, TimeoutError):
    """The job is not terminal yet; it goes on.

    Attributes:
        job: the job as it was seen last; None if no answer came at all.
    """

    job: proving_pb2.Job | None = None


_KINDS: dict[str, type[PartitaError]] = {
    "INVALID_ARGUMENT": InvalidRequestError,
    "FAILED_PRECONDITION": InvalidRequestError,
    "OUT_OF_RANGE": InvalidRequestError,
    "ALREADY_EXISTS": InvalidRequestError,
    "PERMISSION_DENIED": InvalidRequestError,
    "UNAUTHENTICATED": InvalidRequestError,
    "UNIMPLEMENTED": InvalidRequestError,
    "NOT_FOUND": NotFoundError,
    "RESOURCE_EXHAUSTED": OverloadedError,
    "UNAVAILABLE": UnavailableError,
    "DEADLINE_EXCEEDED": UnavailableError,
}


def error_of(error: grpc.RpcError, address: str) -> PartitaError:
    """Return the error that a failed call means.

    Args:
        error: what the sync or the asyncio stack raised.
        address: whom the call went to, for the message.
    """
    call: Any = error
    code = call.code().name
    reason, metadata, fields, retry_after_s = "", {}, {}, None
    for detail in _details(call):
        info = error_details_pb2.ErrorInfo()
        bad = error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            fields = {one.field: one.description for one in bad.field_violations}
        elif detail.Unpack(retry):
            retry_after_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    kind = BlobMissingError if reason == "BLOB_MISSING" else _KINDS.get(code, ServerError)
    message = call.details() or code
    if not reason:
        message = f"{address}: {message}"
    return kind(message, code, reason, fields, metadata, retry_after_s)


def _details(call: Any) -> list[Any]:
    try:
        status = rpc_status.from_call(call)
    except ValueError:  # trailers that contradict the status: some proxy's, not ours
        return []
    return list(status.details) if status else []
