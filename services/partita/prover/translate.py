"""Between the messages of partita.v1 and the core's values, field by field.

Nothing is judged here except what the wire promises about every message: an unknown priority is
NORMAL, an unknown field is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration

from partita.prover.core.model import (
    Actual,
    BlobRef,
    Bytes,
    Desired,
    Failure,
    HeldKey,
    HeldLease,
    LeaseOrder,
    Priority,
    Proof,
    Timings,
)
from partita.v1 import dispatch_pb2, types_pb2

if TYPE_CHECKING:
    from partita.prover.offers import Offer
    from partita.service.fingerprint import Fingerprint


def desired(message: dispatch_pb2.Desired) -> Desired:
    """Return the core's Desired of a message."""
    return Desired(
        epoch=message.epoch,
        revision=message.revision,
        leases=tuple(lease_order(x) for x in message.leases),
        keys=tuple(message.keys),
        drain=message.drain,
        catalogue_revision=message.catalogue_revision,
    )


def lease_order(message: dispatch_pb2.Lease) -> LeaseOrder:
    """Return the core's order of a lease."""
    try:
        priority = Priority(message.priority)
    except ValueError:
        priority = Priority.NORMAL
    return LeaseOrder(
        lease_id=message.lease_id,
        job_id=message.job_id,
        partition_index=message.partition_index,
        attempt=message.attempt,
        circuit_id=message.circuit_id,
        manifest_sha256=message.manifest_sha256,
        input=BlobRef(message.input.sha256, message.input.size_bytes),
        input_format=message.input_format,
        priority=priority,
        job_seq=message.job_seq,
        reserved=Bytes(message.reserved.host, message.reserved.device),
        diagnose=message.diagnose,
        statement_sha256=message.statement_sha256,
        inline=message.inline,
    )


def actual_message(actual: Actual, measured_host_bytes: int = 0) -> dispatch_pb2.Actual:
    """Return the message of an Actual."""
    return dispatch_pb2.Actual(
        applied=actual.applied,
        condition=f"CONDITION_{actual.condition.name}",
        reason=actual.reason,
        leases=[_held_lease(x) for x in actual.leases],
        keys=[_held_key(x) for x in actual.keys],
        measured=types_pb2.Bytes(host=measured_host_bytes),
    )


def offer_message(offer: Offer) -> dispatch_pb2.CircuitOffer:
    """Return the message of an offer."""
    return dispatch_pb2.CircuitOffer(
        circuit_id=offer.circuit_id,
        manifest_sha256=offer.manifest_sha256,
        key=bytes_message(offer.key),
        peak=bytes_message(offer.peak),
        after_release=bytes_message(offer.after_release),
        input_formats=offer.input_formats,
        unusable_reason=offer.unusable_reason,
        load_time=duration_message(offer.load_ns),
        expected=duration_message(offer.expected_ns),
    )


def fingerprint_message(fingerprint: Fingerprint) -> types_pb2.Fingerprint:
    """Return the message of a fingerprint."""
    return types_pb2.Fingerprint(**fingerprint.values())  # type: ignore[arg-type]


def bytes_message(amount: Bytes) -> types_pb2.Bytes:
    """Return the message of an amount of memory."""
    return types_pb2.Bytes(host=amount.host, device=amount.device)


def duration_message(duration_ns: int) -> Duration:
    """Return the message of a duration."""
    seconds, nanos = divmod(duration_ns, 10**9)
    return Duration(seconds=seconds, nanos=nanos)


def duration_ns(message: Duration) -> int:
    """Return the nanoseconds of a duration."""
    return message.seconds * 10**9 + message.nanos


def _held_lease(lease: HeldLease) -> dispatch_pb2.HeldLease:
    outcome = lease.outcome
    return dispatch_pb2.HeldLease(
        lease_id=lease.lease_id,
        job_id=lease.job_id,
        partition_index=lease.partition_index,
        attempt=lease.attempt,
        phase=f"PHASE_{lease.phase.name}",
        held=bytes_message(lease.held),
        permille=lease.permille,
        proved=_proved(outcome) if isinstance(outcome, Proof) else None,
        failure=_failure(outcome) if isinstance(outcome, Failure) else None,
    )


def _proved(proof: Proof) -> dispatch_pb2.Proved:
    return dispatch_pb2.Proved(
        proof=proof.proof,
        statement=proof.statement,
        timings=_timings(proof.timings),
        peak=bytes_message(proof.peak),
    )


def _failure(failure: Failure) -> types_pb2.Failure:
    return types_pb2.Failure(
        kind=f"FAILURE_KIND_{failure.kind.name}", reason=failure.reason, detail=failure.detail
    )


def _timings(timings: Timings) -> types_pb2.Timings:
    return types_pb2.Timings(
        fetch=duration_message(timings.fetch_ns),
        key_load=duration_message(timings.key_load_ns),
        synthesis=duration_message(timings.synthesis_ns),
        device=duration_message(timings.device_ns),
        total=duration_message(timings.total_ns),
    )


def _held_key(key: HeldKey) -> dispatch_pb2.HeldKey:
    return dispatch_pb2.HeldKey(
        manifest_sha256=key.manifest_sha256,
        state=f"STATE_{key.state.name}",
        held=bytes_message(key.held),
        references=key.references,
        reason=key.reason,
    )
