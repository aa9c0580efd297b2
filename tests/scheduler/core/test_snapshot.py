"""Snapshots, digests, and that the core is a function of its events."""

from __future__ import annotations

import pickle

import pytest

from partita.scheduler.core.errors import SnapshotRejected
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import FailureKind
from tests.scheduler.core.world import Peer, World


def busy() -> World:
    world = World("a", "b")
    peer = Peer(world, "gpu-0", slots=2).connect()
    world.submit("j", 4, circuit="a", request_id="r")
    world.submit("k", 2, circuit="b")
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.fail(peer.lease_of("j", 1), FailureKind.COMPUTE)
    return world


def test_the_same_events_give_the_same_effects_and_the_same_digest() -> None:
    one, two = busy(), busy()
    assert one.effects == two.effects
    assert one.core.digest() == two.core.digest()


def test_a_restored_snapshot_goes_on_exactly_as_the_original() -> None:
    world = busy()
    copy = SchedulerCore.restore(world.core.snapshot())
    assert copy.digest() == world.core.digest()
    copy.check()
    for seconds in (1, 5, 30, 300):
        at = world.now + seconds * 1_000_000_000
        assert copy.tick(at) == world.core.tick(at)
    assert copy.digest() == world.core.digest()


def test_every_change_changes_the_digest() -> None:
    world = World()
    seen = {world.core.digest()}
    peer = Peer(world, "gpu-0").connect()
    seen.add(world.core.digest())
    world.submit("j")
    seen.add(world.core.digest())
    peer.sync()
    seen.add(world.core.digest())
    peer.prove(peer.lease_of("j"))
    seen.add(world.core.digest())
    assert len(seen) == 5


def test_looking_at_desired_changes_neither_digest_nor_snapshot() -> None:
    world = busy()
    sessions = [p.session for p in world.core.fleet().provers if p.session is not None]
    before = world.core.snapshot(), world.core.digest()
    assert any(world.core.desired(session).leases for session in sessions)
    assert world.core.digest() == before[1]
    assert world.core.snapshot() == before[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"something else",
        b"partita-core-1\n",
        b"partita-core-1\ngarbage",
        b"partita-core-1\n" + pickle.dumps({"a": 1}),
        b"partita-core-1\n" + pickle.dumps(print),
    ],
)
def test_what_is_not_a_snapshot_is_rejected(data: bytes) -> None:
    with pytest.raises(SnapshotRejected, match="snapshot"):
        SchedulerCore.restore(data)


def test_a_truncated_snapshot_is_rejected() -> None:
    data = busy().core.snapshot()
    for cut in range(20, len(data), 997):
        with pytest.raises(SnapshotRejected):
            SchedulerCore.restore(data[:cut])
