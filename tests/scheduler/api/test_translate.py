"""Enumerations have the same numbers on both sides, and messages lose nothing on the way."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any

import pytest

from partita.scheduler.api.peer import DesiredWriter, actual_of, desired_message, hello_of
from partita.scheduler.api.translate import duration, failure_message, member, ns_of, timestamp
from partita.scheduler.core import model, views
from partita.scheduler.core.model import (
    BlobRef,
    Bytes,
    Condition,
    Desired,
    Failure,
    FailureKind,
    LeaseOrder,
    Phase,
    Priority,
)
from partita.v1 import dispatch_pb2, fleet_pb2, proving_pb2, types_pb2

PAIRS: list[tuple[type[IntEnum], Any, str]] = [
    (model.Priority, types_pb2.Priority, "PRIORITY_"),
    (model.FailureKind, types_pb2.FailureKind, "FAILURE_KIND_"),
    (model.Phase, types_pb2.Phase, "PHASE_"),
    (model.KeyShown, dispatch_pb2.HeldKey.State, "STATE_"),
    (model.Condition, dispatch_pb2.Condition, "CONDITION_"),
    (model.Mode, fleet_pb2.Mode, "MODE_"),
    (model.Trust, fleet_pb2.Trust, "TRUST_"),
    (model.StatementSource, proving_pb2.StatementSource, "STATEMENT_SOURCE_"),
    (model.PartitionState, proving_pb2.PartitionState, "PARTITION_STATE_"),
    (views.PublicState, proving_pb2.JobState, "JOB_STATE_"),
]


@pytest.mark.parametrize(
    ("kind", "wire", "prefix"), PAIRS, ids=lambda x: getattr(x, "__name__", "")
)
def test_an_enumeration_has_the_numbers_of_the_wire(
    kind: type[IntEnum], wire: Any, prefix: str
) -> None:
    core = {name: int(value) for name, value in kind.__members__.items()}
    core.setdefault("UNSPECIFIED", 0)
    assert core == {name.removeprefix(prefix): value for name, value in wire.items()}


@pytest.mark.parametrize("time_ns", [0, 1, 10**9 - 1, 10**9, 1_796_058_421_123_456_789])
def test_times_keep_their_nanoseconds(time_ns: int) -> None:
    assert ns_of(timestamp(time_ns)) == time_ns
    assert ns_of(duration(time_ns)) == time_ns


def test_a_failure_s_text_is_cut_by_its_bytes_and_never_inside_a_character() -> None:
    failure = Failure(FailureKind.COMPUTE, "WHY", "ü" * 150)
    assert failure_message(failure, 201).detail == "ü" * 100
    assert failure_message(failure).detail == "ü" * 150


def test_an_unknown_number_counts_as_the_unspecified_one() -> None:
    assert member(Priority, 77, Priority.NORMAL) is Priority.NORMAL
    lease = dispatch_pb2.HeldLease(lease_id="l", job_id="j", phase=99)  # type: ignore[arg-type]
    lease.failure.kind = 55  # type: ignore[assignment]
    actual = actual_of(dispatch_pb2.Actual(condition=42, leases=[lease]))  # type: ignore[arg-type]
    assert actual.condition is Condition.UNSPECIFIED
    assert actual.leases[0].phase is Phase.UNSPECIFIED
    outcome = actual.leases[0].outcome
    assert isinstance(outcome, model.Failure)
    assert outcome.kind is FailureKind.INTERNAL


def test_a_hello_is_read_in_full() -> None:
    offer = dispatch_pb2.CircuitOffer(
        circuit_id="c",
        manifest_sha256=b"m" * 32,
        key=types_pb2.Bytes(host=1, device=2),
        peak=types_pb2.Bytes(host=3, device=4),
        after_release=types_pb2.Bytes(host=5, device=6),
        input_formats=["wtns"],
        unusable_reason="broken",
    )
    offer.load_time.FromNanoseconds(7)
    offer.expected.FromNanoseconds(8)
    hello = hello_of(
        dispatch_pb2.Hello(
            prover_id="p",
            instance_id="i",
            contract_min=1,
            contract_max=2,
            features=["f"],
            fingerprint=types_pb2.Fingerprint(version="1", code_sha256=b"c" * 32, driver="d"),
            total=types_pb2.Bytes(host=9, device=10),
            max_leases=3,
            express_leases=2,
            highest_epoch=11,
            offers=[offer],
            labels={"rack": "7"},
        )
    )
    assert hello == model.Hello(
        prover_id="p",
        instance_id="i",
        total=Bytes(9, 10),
        max_leases=3,
        express_leases=2,
        highest_epoch=11,
        offers=(
            model.CircuitOffer(
                "c", b"m" * 32, Bytes(1, 2), Bytes(3, 4), Bytes(5, 6), ("wtns",), "broken", 7, 8
            ),
        ),
        features=("f",),
        fingerprint=model.Fingerprint(version="1", code_sha256=b"c" * 32, driver="d"),
        labels=(("rack", "7"),),
        contract_min=1,
        contract_max=2,
    )


def test_an_actual_is_read_in_full() -> None:
    held = dispatch_pb2.HeldLease(
        lease_id="1.1",
        job_id="j",
        partition_index=2,
        attempt=3,
        phase=types_pb2.PHASE_FINISHED,
        held=types_pb2.Bytes(host=1),
        permille=2000,
        proved=dispatch_pb2.Proved(proof=b"p", statement=b"s", peak=types_pb2.Bytes(host=5)),
    )
    held.proved.timings.device.FromNanoseconds(6)
    actual = actual_of(
        dispatch_pb2.Actual(
            applied=4,
            condition=dispatch_pb2.CONDITION_DRAINING,
            reason="r",
            leases=[held],
            keys=[
                dispatch_pb2.HeldKey(
                    manifest_sha256=b"m" * 32,
                    state=dispatch_pb2.HeldKey.STATE_FAILED,
                    held=types_pb2.Bytes(device=7),
                    references=8,
                    reason="bad",
                )
            ],
            measured=types_pb2.Bytes(host=9),
        )
    )
    assert actual == model.Actual(
        applied=4,
        condition=Condition.DRAINING,
        reason="r",
        leases=(
            model.HeldLease(
                "1.1",
                "j",
                2,
                3,
                Phase.FINISHED,
                Bytes(1),
                1000,
                model.Proved(b"p", b"s", model.Timings(device_ns=6), Bytes(5)),
            ),
        ),
        keys=(model.HeldKey(b"m" * 32, model.KeyShown.FAILED, Bytes(0, 7), 8, "bad"),),
        measured=Bytes(9),
    )


def _order(lease_id: str) -> LeaseOrder:
    return LeaseOrder(
        lease_id=lease_id,
        job_id="j",
        partition_index=2,
        attempt=3,
        circuit_id="c",
        manifest_sha256=b"m" * 32,
        input=BlobRef(b"i" * 32, 4),
        input_format="wtns",
        priority=Priority.CRITICAL,
        job_seq=5,
        reserved=Bytes(6, 7),
        timeout_ns=8,
        diagnose=True,
        statement_sha256=b"s" * 32,
        inline=b"data",
    )


def test_a_desired_is_written_in_full_and_shown_without_inputs() -> None:
    order = _order("1.1")
    desired = Desired(9, 10, (order,), (b"k" * 32,), drain=True, catalogue_revision=b"r" * 32)
    message = DesiredWriter().message(desired)
    (lease,) = message.leases
    assert (message.epoch, message.revision, message.drain) == (9, 10, True)
    assert (list(message.keys), message.catalogue_revision) == ([b"k" * 32], b"r" * 32)
    assert {field.name for field, _ in lease.ListFields()} == {
        field.name for field in lease.DESCRIPTOR.fields
    } - {"traceparent"}
    assert (lease.inline, lease.priority, lease.job_seq) == (
        b"data",
        types_pb2.PRIORITY_CRITICAL,
        5,
    )
    assert ns_of(lease.timeout) == 8
    assert desired_message(desired).leases[0].inline == b""


def test_a_lease_that_changed_is_told_anew_and_only_it() -> None:
    orders = [_order(name) for name in ("1.1", "1.2")]
    writer = DesiredWriter()
    first = writer.message(Desired(9, 1, tuple(orders), (), drain=False, catalogue_revision=b""))
    orders[0] = replace(orders[0], priority=Priority.HIGH, inline=None)
    second = writer.message(Desired(9, 2, tuple(orders), (), drain=False, catalogue_revision=b""))
    assert (second.leases[0].priority, second.leases[0].inline) == (
        types_pb2.PRIORITY_HIGH,
        b"",
    )
    assert second.leases[1] == first.leases[1]
    last = writer.message(Desired(9, 3, (), (), drain=False, catalogue_revision=b""))
    assert not last.leases
