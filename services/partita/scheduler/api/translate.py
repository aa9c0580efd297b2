"""The core's views as messages of the wire: pure, field by field.

Enumerations have the same numbers on both sides (a test compares them); times are Timestamps of the
service's clock; an absent value stays absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from partita.scheduler.core.model import (
    Bytes,
    Failure,
    Timings,
)
from partita.scheduler.core.views import JobView, PartitionView
from partita.service.fingerprint import Fingerprint
from partita.v1 import proving_pb2, types_pb2

MAX_FAILURES = 5
MAX_DETAIL_BYTES = 200
"""What a Job shows of each partition's failures; ListPartitions shows them all."""

E = TypeVar("E", bound=IntEnum)


def member(kind: type[E], value: int, unknown: E) -> E:
    """Return the member of an enumeration with that number, `unknown` if there is none."""
    try:
        return kind(value)
    except ValueError:
        return unknown


def timestamp(time_ns: int) -> Timestamp:
    """Return a moment as a Timestamp."""
    seconds, nanos = divmod(time_ns, 10**9)
    return Timestamp(seconds=seconds, nanos=nanos)


def maybe_timestamp(time_ns: int | None) -> Timestamp | None:
    """Return a moment as a Timestamp, None for None."""
    return None if time_ns is None else timestamp(time_ns)


def duration(length_ns: int) -> Duration:
    """Return a length of time as a Duration."""
    seconds, nanos = divmod(max(length_ns, 0), 10**9)
    return Duration(seconds=seconds, nanos=nanos)


def ns_of(value: Timestamp | Duration) -> int:
    """Return nanoseconds of a Timestamp or Duration."""
    return int(value.seconds) * 10**9 + int(value.nanos)


def bytes_message(amount: Bytes) -> types_pb2.Bytes:
    """Return an amount of memory; never below zero."""
    return types_pb2.Bytes(host=max(amount.host, 0), device=max(amount.device, 0))


def failure_message(failure: Failure, max_bytes: int | None = None) -> types_pb2.Failure:
    """Return a failure, its text cut off after `max_bytes` of UTF-8."""
    return types_pb2.Failure(
        kind=int(failure.kind),  # type: ignore[arg-type]
        reason=failure.reason,
        detail=failure.detail.encode()[:max_bytes].decode(errors="ignore"),
        prover_id=failure.prover_id,
        attempt=failure.attempt,
        time=timestamp(failure.time_ns) if failure.time_ns else None,
    )


def timings_message(timings: Timings) -> types_pb2.Timings | None:
    """Return timings; unknown ones are absent, None if all are unknown."""
    known = {
        name: duration(value)
        for name, value in (
            ("queue", timings.queue_ns),
            ("fetch", timings.fetch_ns),
            ("key_load", timings.key_load_ns),
            ("synthesis", timings.synthesis_ns),
            ("device", timings.device_ns),
            ("verify", timings.verify_ns),
            ("total", timings.total_ns),
        )
        if value
    }
    return types_pb2.Timings(**known) if known else None


def fingerprint_message(build: Fingerprint) -> types_pb2.Fingerprint:
    """Return the build of this process."""
    return types_pb2.Fingerprint(**build.values())  # type: ignore[arg-type]


def job_message(job: JobView, partitions: Iterable[PartitionView] = ()) -> proving_pb2.Job:
    """Return a job, with its partitions but without their proofs and statements."""
    total = Timings()
    if job.ended_ns is not None:
        started_ns = job.ended_ns if job.started_ns is None else job.started_ns
        total = Timings(
            queue_ns=started_ns - job.created_ns, total_ns=job.ended_ns - job.created_ns
        )
    return proving_pb2.Job(
        job_id=job.job_id,
        request_id=job.request_id,
        circuit_id=job.circuit_id,
        state=int(job.state),  # type: ignore[arg-type]
        priority=int(job.priority),  # type: ignore[arg-type]
        partitions=[partition_message(part, results=False) for part in partitions],
        failure=None if job.failure is None else failure_message(job.failure),
        partitions_done=job.partitions_done,
        partitions_ahead=job.partitions_ahead,
        created=timestamp(job.created_ns),
        started=maybe_timestamp(job.started_ns),
        ended=maybe_timestamp(job.ended_ns),
        timings=timings_message(total),
        expected_end=maybe_timestamp(job.expected_end_ns),
        partitions_total=job.n_partitions,
        labels=dict(job.labels),
    )


def partition_message(part: PartitionView, *, results: bool) -> proving_pb2.Partition:
    """Return a partition.

    Args:
        part: the partition.
        results: with proof, statement and every failure in full; otherwise only what keeps a
            job of 1,024 partitions within one message.
    """
    failures = (
        [failure_message(failure) for failure in part.failures]
        if results
        else [failure_message(f, MAX_DETAIL_BYTES) for f in part.failures[-MAX_FAILURES:]]
    )
    return proving_pb2.Partition(
        index=part.index,
        state=int(part.state),  # type: ignore[arg-type]
        phase=int(part.phase),  # type: ignore[arg-type]
        prover_id=part.prover_id,
        attempt=part.attempt,
        waiting_for=part.waiting_for,
        proof=part.proof if results else b"",
        statement=part.statement if results else b"",
        statement_source=int(part.statement_source),  # type: ignore[arg-type]
        failures=failures,
        statement_sha256=part.statement_sha256,
        timings=timings_message(part.timings),
    )
