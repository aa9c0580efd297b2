"""The core's records as rows of a table and back: pure, without a database.

Nested values become JSON text with short, fixed keys; digests, proofs and inputs stay bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from partita.scheduler.core.model import (
    BlobRef,
    Bytes,
    CrashMark,
    Failure,
    FailureKind,
    JobState,
    Mode,
    Outcome,
    PartitionSpec,
    PartitionState,
    Priority,
    StatementSource,
    Timings,
    Trust,
)
from partita.scheduler.core.records import (
    JobRecord,
    LeaseRecord,
    PartitionRecord,
    PinRecord,
    ProverRecord,
)

Row = tuple[Any, ...]

JOB_COLUMNS = (
    "job_id, job_seq, request_id, digest, circuit_id, manifest_sha256, input_format, priority, "
    "state, outcome, failure, deadline_ns, retain_ns, abandon_after_ns, created_ns, started_ns, "
    "ended_ns, labels, retry_of"
)
INPUT_COLUMNS = "job_id, idx, sha256, size_bytes, inline, statement, statement_source"
PARTITION_COLUMNS = (
    "job_id, idx, state, attempt, failures, crashes, taken, proof, statement, statement_source, "
    "prover_id, proved_ns, timings"
)
LEASE_COLUMNS = (
    "lease_id, job_id, idx, attempt, prover_id, instance_id, reserved_host, reserved_device"
)
PROVER_COLUMNS = (
    "prover_id, mode, trust, reason, debits, proved, failed, trust_reason, quarantined_until_ns"
)
PIN_COLUMNS = "manifest_sha256, prover_id, pinned"


_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _failure_out(failure: Failure) -> list[object]:
    return [
        int(failure.kind),
        failure.reason,
        failure.detail,
        failure.prover_id,
        failure.attempt,
        failure.time_ns,
    ]


def _failure_in(value: Sequence[Any]) -> Failure:
    return Failure(FailureKind(value[0]), *value[1:])


def job_row(job: JobRecord) -> Row:
    """Return the row of a job, in the order of JOB_COLUMNS."""
    return (
        job.job_id,
        job.job_seq,
        job.request_id,
        job.digest,
        job.circuit_id,
        job.manifest_sha256,
        job.input_format,
        int(job.priority),
        int(job.state),
        None if job.outcome is None else int(job.outcome),
        None if job.failure is None else _json(_failure_out(job.failure)),
        job.deadline_ns,
        job.retain_ns,
        job.abandon_after_ns,
        job.created_ns,
        job.started_ns,
        job.ended_ns,
        _json(job.labels),
        job.retry_of,
    )


def job_of(row: Row) -> JobRecord:
    """Return the job of a row."""
    return JobRecord(
        job_id=row[0],
        job_seq=row[1],
        request_id=row[2],
        digest=row[3],
        circuit_id=row[4],
        manifest_sha256=row[5],
        input_format=row[6],
        priority=Priority(row[7]),
        state=JobState(row[8]),
        outcome=None if row[9] is None else Outcome(row[9]),
        failure=None if row[10] is None else _failure_in(json.loads(row[10])),
        deadline_ns=row[11],
        retain_ns=row[12],
        abandon_after_ns=row[13],
        created_ns=row[14],
        started_ns=row[15],
        ended_ns=row[16],
        labels=tuple((key, value) for key, value in json.loads(row[17])),
        retry_of=row[18],
    )


def input_row(job_id: str, index: int, spec: PartitionSpec) -> Row:
    """Return the row of a submitted input, in the order of INPUT_COLUMNS."""
    return (
        job_id,
        index,
        spec.input.sha256,
        spec.input.size_bytes,
        spec.inline,
        spec.statement,
        int(spec.statement_source),
    )


def input_of(row: Row) -> PartitionSpec:
    """Return the submitted input of a row."""
    return PartitionSpec(BlobRef(row[2], row[3]), row[4], row[5], StatementSource(row[6]))


def partition_row(part: PartitionRecord) -> Row:
    """Return the row of a partition, in the order of PARTITION_COLUMNS."""
    times = part.timings
    return (
        part.job_id,
        part.index,
        int(part.state),
        part.attempt,
        _json([_failure_out(failure) for failure in part.failures]),
        _json([[c.lease_id, c.prover_id, c.instance_id, c.time_ns] for c in part.crashes]),
        _json(part.taken),
        part.proof,
        part.statement,
        int(part.statement_source),
        part.prover_id,
        part.proved_ns,
        _json(
            [
                times.queue_ns,
                times.fetch_ns,
                times.key_load_ns,
                times.synthesis_ns,
                times.device_ns,
                times.verify_ns,
                times.total_ns,
            ]
        ),
    )


def partition_of(row: Row) -> PartitionRecord:
    """Return the partition of a row."""
    return PartitionRecord(
        job_id=row[0],
        index=row[1],
        state=PartitionState(row[2]),
        attempt=row[3],
        failures=tuple(_failure_in(value) for value in json.loads(row[4])),
        crashes=tuple(CrashMark(*value) for value in json.loads(row[5])),
        taken=tuple(json.loads(row[6])),
        proof=row[7],
        statement=row[8],
        statement_source=StatementSource(row[9]),
        prover_id=row[10],
        proved_ns=row[11],
        timings=Timings(*json.loads(row[12])),
    )


def lease_row(lease: LeaseRecord) -> Row:
    """Return the row of a lease, in the order of LEASE_COLUMNS."""
    return (
        lease.lease_id,
        lease.job_id,
        lease.index,
        lease.attempt,
        lease.prover_id,
        lease.instance_id,
        lease.reserved.host,
        lease.reserved.device,
    )


def lease_of(row: Row) -> LeaseRecord:
    """Return the lease of a row."""
    return LeaseRecord(row[0], row[1], row[2], row[3], row[4], row[5], Bytes(row[6], row[7]))


def prover_row(prover: ProverRecord) -> Row:
    """Return the row of a prover, in the order of PROVER_COLUMNS."""
    return (
        prover.prover_id,
        int(prover.mode),
        int(prover.trust),
        prover.reason,
        prover.debits,
        prover.proved,
        prover.failed,
        prover.trust_reason,
        prover.quarantined_until_ns,
    )


def prover_of(row: Row) -> ProverRecord:
    """Return the prover of a row."""
    return ProverRecord(row[0], Mode(row[1]), Trust(row[2]), *row[3:])


def pin_row(pin: PinRecord) -> Row:
    """Return the row of a pin that is there, in the order of PIN_COLUMNS."""
    return pin.manifest_sha256, pin.prover_id, int(bool(pin.pinned))


def pin_of(row: Row) -> PinRecord:
    """Return the pin of a row."""
    return PinRecord(row[0], row[1], bool(row[2]))
