"""The fleet as messages of the wire: pure, without inputs, proofs or statements."""

from __future__ import annotations

from partita.scheduler.api.peer import desired_message
from partita.scheduler.api.translate import (
    bytes_message,
    duration,
    failure_message,
    maybe_timestamp,
    timings_message,
)
from partita.scheduler.core.model import Actual, CircuitOffer, Failure, HeldLease, Hello, Proved
from partita.scheduler.core.views import FleetView, ProverView
from partita.v1 import dispatch_pb2, fleet_pb2, types_pb2


def snapshot_message(fleet: FleetView) -> fleet_pb2.FleetSnapshot:
    """Return the whole fleet."""
    return fleet_pb2.FleetSnapshot(
        epoch=fleet.epoch,
        provers=[prover_message(prover) for prover in fleet.provers],
        lanes=[
            fleet_pb2.LaneView(
                circuit_id=lane.circuit_id,
                waiting=lane.waiting,
                head_job_id=lane.head_job_id,
                head_index=lane.head_index,
                waiting_for=lane.waiting_for,
            )
            for lane in fleet.lanes
        ],
        jobs_open=fleet.jobs_open,
        circuits=[
            fleet_pb2.CircuitLoad(
                circuit_id=load.circuit_id,
                jobs_open=load.open_jobs,
                partitions_waiting=load.waiting,
                partitions_leased=load.leased,
            )
            for load in fleet.circuits
        ],
    )


def prover_message(prover: ProverView) -> fleet_pb2.ProverView:
    """Return one prover."""
    hello = (
        dispatch_pb2.Hello(prover_id=prover.prover_id)
        if prover.hello is None
        else _hello(prover.hello)
    )
    return fleet_pb2.ProverView(
        hello=hello,
        actual=None if prover.actual is None else _actual(prover.actual),
        desired=None if prover.desired is None else desired_message(prover.desired),
        mode=int(prover.mode),  # type: ignore[arg-type]
        trust=int(prover.trust),  # type: ignore[arg-type]
        reason=_why(prover),
        charged=bytes_message(prover.charged),
        proved=prover.proved,
        failed=prover.failed,
        last_seen=maybe_timestamp(prover.last_seen_ns),
        connected=prover.session is not None,
        debits=max(prover.debits, 0),
    )


def _why(prover: ProverView) -> str:
    """Say why it takes no leases, or what went wrong on it last."""
    if prover.reason:
        return prover.reason
    if prover.unresponsive:
        return "unresponsive: no message for too long"
    if prover.actual is not None and prover.actual.reason:
        return prover.actual.reason
    if prover.failed_keys:
        return "key failed: " + "; ".join(prover.failed_keys)
    last = prover.last_failure
    return "" if last is None else f"{last.kind.name} {last.reason}: {last.detail}"


def _hello(hello: Hello) -> dispatch_pb2.Hello:
    build = hello.fingerprint
    return dispatch_pb2.Hello(
        prover_id=hello.prover_id,
        instance_id=hello.instance_id,
        contract_min=hello.contract_min,
        contract_max=hello.contract_max,
        features=hello.features,
        fingerprint=types_pb2.Fingerprint(
            version=build.version,
            commit=build.commit,
            code_sha256=build.code_sha256,
            kernels_sha256=build.kernels_sha256,
            native_sha256=build.native_sha256,
            backend=build.backend,
            device=build.device,
            driver=build.driver,
            runtime=build.runtime,
        ),
        total=bytes_message(hello.total),
        max_leases=hello.max_leases,
        express_leases=hello.express_leases,
        highest_epoch=hello.highest_epoch,
        offers=[_offer(offer) for offer in hello.offers],
        labels=dict(hello.labels),
    )


def _offer(offer: CircuitOffer) -> dispatch_pb2.CircuitOffer:
    return dispatch_pb2.CircuitOffer(
        circuit_id=offer.circuit_id,
        manifest_sha256=offer.manifest_sha256,
        key=bytes_message(offer.key),
        peak=bytes_message(offer.peak),
        after_release=bytes_message(offer.after_release),
        input_formats=offer.input_formats,
        unusable_reason=offer.unusable_reason,
        load_time=duration(offer.load_time_ns),
        expected=duration(offer.expected_ns),
    )


def _actual(actual: Actual) -> dispatch_pb2.Actual:
    return dispatch_pb2.Actual(
        applied=actual.applied,
        condition=int(actual.condition),  # type: ignore[arg-type]
        reason=actual.reason,
        leases=[_held_lease(lease) for lease in actual.leases],
        keys=[
            dispatch_pb2.HeldKey(
                manifest_sha256=key.manifest_sha256,
                state=int(key.state),  # type: ignore[arg-type]
                held=bytes_message(key.held),
                references=key.references,
                reason=key.reason,
            )
            for key in actual.keys
        ],
        measured=bytes_message(actual.measured),
    )


def _held_lease(lease: HeldLease) -> dispatch_pb2.HeldLease:
    message = dispatch_pb2.HeldLease(
        lease_id=lease.lease_id,
        job_id=lease.job_id,
        partition_index=lease.partition_index,
        attempt=lease.attempt,
        phase=int(lease.phase),  # type: ignore[arg-type]
        held=bytes_message(lease.held),
        permille=lease.permille,
    )
    match lease.outcome:
        case Proved() as proved:
            message.proved.CopyFrom(
                dispatch_pb2.Proved(
                    timings=timings_message(proved.timings), peak=bytes_message(proved.peak)
                )
            )
        case Failure() as failure:
            message.failure.CopyFrom(failure_message(failure))
    return message
