"""Jobs, partitions and provers as objects for `--json` and as tables for people.

Bytes become hex, times RFC 3339 text, durations seconds, enumerations lower-case words; what is
absent is null. The keys are part of what the command line keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.service.sizes import format_duration, format_size
from partita.v1 import dispatch_pb2, fleet_pb2, proving_pb2, types_pb2

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp
    from rich.table import Table

_STAGES = ("queue", "fetch", "key_load", "synthesis", "device", "verify", "total")


def word(enum: Any, number: int) -> str:
    """Return an enumeration's value as a lower-case word without its type's prefix."""
    name: str = enum.Name(number)
    prefix = "".join(
        "_" + letter if letter.isupper() and index else letter
        for index, letter in enumerate(enum.DESCRIPTOR.name)
    )
    return name.removeprefix(prefix.upper() + "_").lower()


def job_object(job: proving_pb2.Job) -> dict[str, Any]:
    """Return a job with its partitions, without proofs."""
    return {
        "job_id": job.job_id,
        "request_id": job.request_id,
        "circuit_id": job.circuit_id,
        "state": word(proving_pb2.JobState, job.state),
        "priority": word(types_pb2.Priority, job.priority),
        "partitions_total": job.partitions_total,
        "partitions_done": job.partitions_done,
        "partitions_ahead": job.partitions_ahead,
        "created": _time(job, "created"),
        "started": _time(job, "started"),
        "ended": _time(job, "ended"),
        "expected_end": _time(job, "expected_end"),
        "timings_s": _timings(job.timings),
        "failure": _failure(job.failure) if job.HasField("failure") else None,
        "labels": dict(job.labels),
        "partitions": [partition_object(partition) for partition in job.partitions],
    }


def outlook_of(job: proving_pb2.Job) -> str:
    """Return what stands before a job and when it should end: "7 partitions ahead, ends 12:03:04Z".

    Empty where neither is known.
    """
    parts = [f"{job.partitions_ahead} partitions ahead"] if job.partitions_ahead else []
    if job.HasField("expected_end"):
        parts.append(f"ends {job.expected_end.ToJsonString()[11:19]}Z")
    return ", ".join(parts)


def partition_object(partition: proving_pb2.Partition) -> dict[str, Any]:
    """Return a partition without its proof and statement."""
    return {
        "index": partition.index,
        "state": word(proving_pb2.PartitionState, partition.state),
        "phase": word(types_pb2.Phase, partition.phase) if partition.phase else None,
        "prover_id": partition.prover_id or None,
        "attempt": partition.attempt,
        "waiting_for": partition.waiting_for or None,
        "statement_source": word(proving_pb2.StatementSource, partition.statement_source)
        if partition.statement_source
        else None,
        "statement_sha256": partition.statement_sha256.hex() or None,
        "failures": [_failure(failure) for failure in partition.failures],
        "timings_s": _timings(partition.timings),
    }


def prover_object(view: fleet_pb2.ProverView) -> dict[str, Any]:
    """Return a prover: what it is, what it holds, and why it takes no leases."""
    hello, actual = view.hello, view.actual
    return {
        "prover_id": hello.prover_id,
        "connected": view.connected,
        "condition": word(dispatch_pb2.Condition, actual.condition) if actual.condition else None,
        "mode": word(fleet_pb2.Mode, view.mode) if view.mode else None,
        "trust": word(fleet_pb2.Trust, view.trust) if view.trust else None,
        "reason": actual.reason or view.reason or None,
        "backend": hello.fingerprint.backend,
        "device": hello.fingerprint.device,
        "version": hello.fingerprint.version,
        "total_bytes": _bytes(hello.total),
        "charged_bytes": _bytes(view.charged),
        "max_leases": hello.max_leases,
        "labels": dict(hello.labels),
        "proved": view.proved,
        "failed": view.failed,
        "debits": view.debits,
        "last_seen": _time(view, "last_seen"),
        "leases": [
            {
                "lease_id": lease.lease_id,
                "job_id": lease.job_id,
                "partition_index": lease.partition_index,
                "phase": word(types_pb2.Phase, lease.phase),
                "permille": lease.permille,
                "held_bytes": _bytes(lease.held),
            }
            for lease in actual.leases
        ],
        "keys": [
            {
                "manifest_sha256": key.manifest_sha256.hex(),
                "circuit_id": _circuit_of(hello, key.manifest_sha256),
                "state": word(dispatch_pb2.HeldKey.State, key.state),
                "held_bytes": _bytes(key.held),
                "reason": key.reason or None,
            }
            for key in actual.keys
        ],
        "unusable": {
            offer.circuit_id: offer.unusable_reason
            for offer in hello.offers
            if offer.unusable_reason
        },
    }


def fleet_object(fleet: fleet_pb2.FleetSnapshot) -> dict[str, Any]:
    """Return the fleet and its queue."""
    return {
        "epoch": fleet.epoch,
        "jobs_open": fleet.jobs_open,
        "provers": [prover_object(view) for view in fleet.provers],
        "queue": [
            {
                "circuit_id": lane.circuit_id,
                "waiting": lane.waiting,
                "head_job_id": lane.head_job_id,
                "head_index": lane.head_index,
                "waiting_for": lane.waiting_for or None,
            }
            for lane in fleet.lanes
        ],
        "circuits": [
            {
                "circuit_id": load.circuit_id,
                "jobs_open": load.jobs_open,
                "partitions_waiting": load.partitions_waiting,
                "partitions_leased": load.partitions_leased,
            }
            for load in fleet.circuits
        ],
    }


def partition_table(job: proving_pb2.Job) -> Table:
    """Return the partitions of a job with prover and times."""
    table = _table("#", "state", "prover", "try", "queue", "synthesis", "device", "total", "note")
    for partition in job.partitions:
        value = partition_object(partition)
        state = value["phase"] if value["state"] == "leased" and value["phase"] else value["state"]
        times = partition.timings
        failures = value["failures"]
        note = value["waiting_for"] or (failures[-1]["detail"] if failures else "")
        table.add_row(
            str(partition.index),
            state,
            partition.prover_id,
            str(partition.attempt) if partition.attempt else "",
            *(_span(times, stage) for stage in ("queue", "synthesis", "device", "total")),
            note,
        )
    return table


def job_table(jobs: list[proving_pb2.Job]) -> Table:
    """Return one line a job."""
    table = _table("job", "circuit", "state", "priority", "done", "created", "took", "note")
    for job in jobs:
        value = job_object(job)
        failure = f"{job.failure.reason}: {job.failure.detail}" if value["failure"] else ""
        note = failure or outlook_of(job)
        table.add_row(
            job.job_id,
            job.circuit_id,
            value["state"],
            value["priority"],
            f"{job.partitions_done}/{job.partitions_total}",
            (value["created"] or "")[:19],
            _span(job.timings, "total"),
            note,
        )
    return table


def prover_table(fleet: fleet_pb2.FleetSnapshot) -> Table:
    """Return one line a prover."""
    table = _table("prover", "state", "host memory", "keys", "does", "proved", "failed", "why not")
    for view in fleet.provers:
        value = prover_object(view)
        state = "connected" if view.connected else "away"
        for key, usual in (("condition", "ready"), ("mode", "active"), ("trust", "trusted")):
            if value[key] and value[key] != usual:
                state += f", {value[key]}"
        charged, total = view.charged.host, view.hello.total.host
        reasons = [value["reason"] or ""]
        reasons += [f"{circuit}: {why}" for circuit, why in value["unusable"].items()]
        reasons += [
            f"key {key['circuit_id']}: {key['reason']}" for key in value["keys"] if key["reason"]
        ]
        table.add_row(
            value["prover_id"],
            state,
            f"{format_size(charged)} of {format_size(total)}",
            ", ".join(
                f"{key['circuit_id']}" + ("" if key["state"] == "ready" else f" ({key['state']})")
                for key in value["keys"]
            ),
            ", ".join(
                f"{lease['job_id']}#{lease['partition_index']} {lease['phase']}"
                for lease in value["leases"]
            )
            or "idle",
            str(view.proved),
            str(view.failed),
            "; ".join(reason for reason in reasons if reason),
        )
    return table


def queue_table(fleet: fleet_pb2.FleetSnapshot) -> Table:
    """Return what waits and for what."""
    table = _table("circuit", "waiting", "first", "waits for")
    for lane in fleet.lanes:
        head = f"{lane.head_job_id}#{lane.head_index}"
        table.add_row(lane.circuit_id, str(lane.waiting), head, lane.waiting_for)
    return table


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _circuit_of(hello: dispatch_pb2.Hello, manifest_sha256: bytes) -> str:
    names = [o.circuit_id for o in hello.offers if o.manifest_sha256 == manifest_sha256]
    return names[0] if names else manifest_sha256.hex()[:12]


def _failure(failure: types_pb2.Failure) -> dict[str, Any]:
    return {
        "kind": word(types_pb2.FailureKind, failure.kind),
        "reason": failure.reason,
        "detail": failure.detail,
        "prover_id": failure.prover_id or None,
        "attempt": failure.attempt or None,
        "time": _time(failure, "time"),
    }


def _bytes(value: types_pb2.Bytes) -> dict[str, int]:
    return {"host": value.host, "device": value.device}


def _time(message: Any, field: str) -> str | None:
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    return stamp.ToJsonString()


def _timings(timings: types_pb2.Timings) -> dict[str, float | None]:
    return {
        stage: getattr(timings, stage).ToNanoseconds() / 1e9 if timings.HasField(stage) else None
        for stage in _STAGES
    }


def _span(timings: types_pb2.Timings, stage: str) -> str:
    if not timings.HasField(stage):
        return ""
    return format_duration(getattr(timings, stage).ToNanoseconds())
