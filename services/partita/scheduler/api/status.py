"""The one table from errors and reasons to what a caller sees: code, reason, retry.

Nothing else in the scheduler chooses a status code. A class that is missing here is a bug that a
test finds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import grpc

from partita.circuits.errors import (
    BrokenCircuitError,
    CatalogueError,
    CircuitExistsError,
    UnknownCircuitError,
)
from partita.scheduler.blobs import (
    BlobError,
    BlobMissingError,
    BlobRejectedError,
    IngestFullError,
)
from partita.scheduler.core.effects import Refuse
from partita.scheduler.core.errors import (
    CoreBug,
    JobUnknown,
    RequestError,
    SchedulerError,
    SessionUnknown,
    SnapshotRejected,
)
from partita.scheduler.engine import EngineStoppedError
from partita.service.grpcio import RpcError, abort

_Code = grpc.StatusCode
SECOND_NS = 1_000_000_000
MAX_LISTED_DIGESTS = 64
"""An error travels in HTTP/2 trailers, and gRPC refuses more than 8 KiB of them."""

CLASSES: dict[type[Exception], tuple[grpc.StatusCode, str]] = {
    SchedulerError: (_Code.INTERNAL, "INTERNAL"),
    RequestError: (_Code.INVALID_ARGUMENT, "BAD_INPUT"),
    JobUnknown: (_Code.NOT_FOUND, "JOB_UNKNOWN"),
    SessionUnknown: (_Code.INTERNAL, "INTERNAL"),
    SnapshotRejected: (_Code.INVALID_ARGUMENT, "BAD_INPUT"),
    CoreBug: (_Code.INTERNAL, "INTERNAL"),
    BlobError: (_Code.INTERNAL, "INTERNAL"),
    BlobRejectedError: (_Code.INVALID_ARGUMENT, "BAD_INPUT"),
    BlobMissingError: (_Code.FAILED_PRECONDITION, "BLOB_MISSING"),
    CatalogueError: (_Code.INVALID_ARGUMENT, "BAD_INPUT"),
    UnknownCircuitError: (_Code.NOT_FOUND, "UNKNOWN_CIRCUIT"),
    CircuitExistsError: (_Code.FAILED_PRECONDITION, "CIRCUIT_EXISTS"),
    BrokenCircuitError: (_Code.INTERNAL, "INTERNAL"),
    EngineStoppedError: (_Code.UNAVAILABLE, "DRAINING"),
    IngestFullError: (_Code.RESOURCE_EXHAUSTED, "INGEST_FULL"),
}
"""Error class -> (code, reason)."""

REASONS: dict[str, grpc.StatusCode] = {
    "BAD_INPUT": _Code.INVALID_ARGUMENT,
    "STATEMENT_LENGTH": _Code.INVALID_ARGUMENT,
    "UNKNOWN_FORMAT": _Code.INVALID_ARGUMENT,
    "TOO_MANY_PARTITIONS": _Code.INVALID_ARGUMENT,
    "UNKNOWN_CIRCUIT": _Code.NOT_FOUND,
    "JOB_UNKNOWN": _Code.NOT_FOUND,
    "PROVER_UNKNOWN": _Code.NOT_FOUND,
    "BLOB_MISSING": _Code.FAILED_PRECONDITION,
    "TOO_LARGE_FOR_FLEET": _Code.FAILED_PRECONDITION,
    "CIRCUIT_EXISTS": _Code.FAILED_PRECONDITION,
    "CIRCUIT_IN_USE": _Code.FAILED_PRECONDITION,
    "NOT_RETRYABLE": _Code.FAILED_PRECONDITION,
    "CONTRACT_MISMATCH": _Code.FAILED_PRECONDITION,
    "FINGERPRINT_MISMATCH": _Code.FAILED_PRECONDITION,
    "PROVER_ID_IN_USE": _Code.ALREADY_EXISTS,
    "QUEUE_FULL": _Code.RESOURCE_EXHAUSTED,
    "INGEST_FULL": _Code.RESOURCE_EXHAUSTED,
    "DRAINING": _Code.UNAVAILABLE,
    "STORE_BEHIND": _Code.UNAVAILABLE,
    "STALE_EPOCH": _Code.ABORTED,
    "SUPERSEDED": _Code.ABORTED,
    "STUCK": _Code.ABORTED,
    "FOREIGN_LEASE": _Code.INVALID_ARGUMENT,
    "INTERNAL": _Code.INTERNAL,
}
"""Every reason that this service says, with its code."""

RETRIED = {"QUEUE_FULL", "INGEST_FULL", "DRAINING", "STORE_BEHIND", "PROVER_ID_IN_USE"}
"""Reasons that carry RetryInfo."""

_TEXTS = {
    "FOREIGN_LEASE": "the prover lists a lease that another prover holds: give each its own name",
    "STUCK": "the prover did not take in its leases in time: reconnect",
    "SUPERSEDED": "the same process opened a newer stream",
    "PROVER_ID_IN_USE": "another live process uses this prover_id: give each prover its own",
    "STALE_EPOCH": "the prover has seen a newer scheduler: this one must not be used",
    "DRAINING": "the scheduler stops: connect again",
}


def refusal(
    reason: str,
    message: str = "",
    *,
    fields: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
    retry_after_ns: int | None = None,
) -> RpcError:
    """Return the error of a reason, with the code of the table.

    Args:
        reason: one of REASONS.
        message: text for people; some reasons have one of their own.
        fields: field path to what is wrong there; becomes the message if there is none.
        metadata: more of ErrorInfo.
        retry_after_ns: for RetryInfo; reasons in RETRIED have one second.
    """
    if not message and fields:
        message = "; ".join(
            text if _begins_with(text, name) else f"{name}: {text}" for name, text in fields.items()
        )
    if retry_after_ns is None and reason in RETRIED:
        retry_after_ns = SECOND_NS
    return RpcError(
        REASONS[reason],
        reason,
        message or _TEXTS.get(reason, reason),
        metadata=metadata or {},
        fields=fields or {},
        retry_after_ns=retry_after_ns,
    )


def _begins_with(text: str, place: str) -> bool:
    """Tell whether a text names its place itself; `job` is not in `jobs`."""
    return text.startswith(place) and not text[len(place) : len(place) + 1].isalnum()


def bad(field: str, text: str, reason: str = "BAD_INPUT") -> RpcError:
    """Return the error of one field of a request."""
    return refusal(reason, fields={field: text})


def unknown_circuit(circuit_id: str, why_unusable: str | None) -> RpcError:
    """Return UNKNOWN_CIRCUIT.

    Args:
        circuit_id: what the caller named.
        why_unusable: of a circuit of that name which is there and cannot be used; None: none is.
    """
    name = f"{circuit_id[:64]!r}"
    if why_unusable is None:
        text = f"no circuit is called {name}: add it with `partita circuits add`, or mend the name"
    else:
        text = (
            f"{name} cannot be used: {why_unusable}; remove it with `partita circuits remove` "
            "and add it again"
        )
    return bad("circuit_id", text, "UNKNOWN_CIRCUIT")


def missing_blobs(digests: tuple[bytes, ...]) -> RpcError:
    """Return BLOB_MISSING with the first digests, in ErrorInfo under `sha256`, comma separated."""
    listed = digests[:MAX_LISTED_DIGESTS]
    more = (
        f" ({len(listed)} are listed; FindMissing tells all)" if len(digests) > len(listed) else ""
    )
    return refusal(
        "BLOB_MISSING",
        f"{len(digests)} blobs are missing: upload them, then repeat{more}",
        metadata={
            "missing": str(len(digests)),
            "sha256": ",".join(digest.hex() for digest in listed),
        },
    )


def of_refusal(refused: Refuse) -> RpcError:
    """Return the error of a submission that the core refused."""
    return refusal(refused.reason, refused.detail, retry_after_ns=refused.retry_after_ns)


def of_error(error: Exception) -> RpcError:
    """Return what a caller sees of an error of a class in the table.

    Raises:
        KeyError: the class is not in the table.
    """
    if isinstance(error, BlobMissingError):
        return missing_blobs(error.digests)
    code, reason = CLASSES[type(error)]
    retry = SECOND_NS if reason in RETRIED else None
    return RpcError(code, reason, str(error), retry_after_ns=retry)


H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


def answers_errors(handler: H) -> H:
    """Let a unary or reading handler raise the errors of the table."""

    @wraps(handler)
    async def handled(self: Any, request: Any, context: Any) -> Any:
        try:
            return await handler(self, request, context)
        except RpcError as error:
            await abort(context, error)
        except tuple(CLASSES) as error:
            await abort(context, of_error(error))

    return handled  # type: ignore[return-value]
