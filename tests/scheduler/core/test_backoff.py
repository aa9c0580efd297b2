"""A prover gets a partition that it failed on again only after a while; another soon."""

from __future__ import annotations

from dataclasses import replace

from partita.scheduler.core import events as ev
from partita.scheduler.core.model import Condition, FailureKind, Phase
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World, offer


def fail_all(peer: Peer) -> None:
    """Let a prover fail all that it shall hold."""
    peer.sync()
    for job_id, index in peer.wanted():
        peer.fail(peer.lease_of(job_id, index), FailureKind.COMPUTE)
    peer.sync()


def test_a_prover_that_must_be_used_again_waits_1_5_then_30_seconds() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    for wait_s in (1, 5, 30, 30):
        peer.sync()
        peer.fail(peer.lease_of("j"), FailureKind.COMPUTE)
        assert peer.wanted() == []
        world.run(wait_s - 0.001)
        assert peer.wanted() == []
        why = world.core.partitions("j")[0].waiting_for
        assert why == "waits before another try after WHY on gpu-0"
        peer.report()
        world.run(0.001)
        assert peer.wanted() == [("j", 0)]


def test_another_prover_that_can_take_it_gets_it_within_a_second() -> None:
    world = World()
    bad = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    for wait_s in (1, 5):
        fail_all(bad)
        world.run(wait_s)
        bad.report()
    fail_all(bad)
    good = Peer(world, "gpu-1", offer("other")).connect()
    world.run(1)
    assert world.core.partitions("j")[0].waiting_for.startswith("waits before another try")
    good.hello = replace(good.hello, offers=(offer("c"),))
    world.do(ev.OffersChanged(good.session, good.hello))
    world.run(1)
    assert good.wanted() == [("j", 0), ("j", 1)]
    assert bad.wanted() == []


def test_another_prover_that_comes_and_goes_does_not_shorten_the_wait() -> None:
    world = World()
    bad = Peer(world, "gpu-0").connect()
    world.submit("j", 4)
    fail_all(bad)
    world.run(1)
    fail_all(bad)
    other = Peer(world, "gpu-1", slots=1, express=0)
    for _ in range(4):
        other.connect()
        world.run(1.1)
        assert len(other.wanted()) == 1
        other.hang_up(clean=True)
        bad.report()
        assert bad.wanted() == []
    world.run(1)
    bad.report()
    assert len(bad.wanted()) == 4
    assert world.core.status("j").state is PublicState.RUNNING


def test_another_prover_that_is_full_and_then_drains_does_not_shorten_the_wait() -> None:
    world = World()
    bad = Peer(world, "gpu-0", slots=1, express=0).connect()
    other = Peer(world, "gpu-1", slots=1, express=0).connect()
    world.submit("j", 2)
    bad.sync()
    other.sync()
    assert (bad.wanted(), other.wanted()) == ([("j", 0)], [("j", 1)])
    bad.fail(bad.lease_of("j", 0), FailureKind.COMPUTE)
    bad.sync()
    assert bad.wanted() == []
    other.condition = Condition.DRAINING
    other.report()
    bad.report()
    assert bad.wanted() == []
    world.run(1)
    bad.report()
    assert bad.wanted() == [("j", 0)]


def test_a_prover_that_drops_leases_again_and_again_waits_too() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.FETCHING)
    peer.leases.clear()
    peer.report()
    assert world.core.partitions("j")[0].failures[0].reason == "LEASE_LOST"
    assert peer.wanted() == []
    world.run(1)
    peer.report()
    assert peer.wanted() == [("j", 0)]


def test_a_job_that_ends_while_a_back_off_runs_is_forgotten_without_a_trace() -> None:
    world = World()
    bad = Peer(world, "gpu-0").connect()
    good = Peer(world, "gpu-1").connect()
    world.submit("j")
    bad.sync()
    bad.fail(bad.lease_of("j"), FailureKind.COMPUTE)
    good.sync()
    good.prove(good.lease_of("j"))
    assert world.core.status("j").state is PublicState.COMPLETED
    world.run(40)
    assert not any(name[0] in ("backoff", "look") for name in world.core._state.timers.armed)
