"""Actuals as they are read from one stream."""

from __future__ import annotations

import pytest

from partita.scheduler.api.peer import ActualReader
from partita.scheduler.core.model import Phase, Proved
from partita.service.grpcio import RpcError
from partita.v1 import dispatch_pb2, types_pb2


def held(lease_id: str, phase: types_pb2.Phase = types_pb2.PHASE_PROVING) -> dispatch_pb2.HeldLease:
    return dispatch_pb2.HeldLease(
        lease_id=lease_id, job_id="job", partition_index=1, attempt=1, phase=phase
    )


def actual(*leases: dispatch_pb2.HeldLease) -> dispatch_pb2.Actual:
    # As it comes from the wire: a message of its own each time.
    return dispatch_pb2.Actual.FromString(dispatch_pb2.Actual(leases=leases).SerializeToString())


def test_a_lease_that_is_repeated_is_read_once() -> None:
    reader = ActualReader()
    first = reader.read(actual(held("1.1"), held("1.2"))).leases
    again = reader.read(actual(held("1.2"), held("1.1"))).leases
    assert again == (first[1], first[0])
    assert again[0] is first[1]


def test_a_lease_that_changed_is_read_again() -> None:
    reader = ActualReader()
    reader.read(actual(held("1.1")))
    changed = held("1.1", types_pb2.PHASE_FINISHED)
    changed.proved.proof = b"proof"
    (lease,) = reader.read(actual(changed)).leases
    assert lease.phase is Phase.FINISHED
    assert isinstance(lease.outcome, Proved)


def test_a_lease_that_left_is_forgotten() -> None:
    reader = ActualReader()
    (first,) = reader.read(actual(held("1.1"))).leases
    reader.read(actual())
    (later,) = reader.read(actual(held("1.1"))).leases
    assert later == first
    assert later is not first


def test_a_bad_lease_is_refused_each_time() -> None:
    reader = ActualReader()
    bad = held("1.1")
    bad.held.host = 1 << 60
    for _ in range(2):
        with pytest.raises(RpcError, match=r"actual\.leases\[0\]\.held\.host"):
            reader.read(actual(bad))
