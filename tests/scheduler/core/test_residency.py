"""Keys that an operator pins or evicts, and what that leaves for everybody else."""

from __future__ import annotations

from partita.scheduler.core import events as ev
from partita.scheduler.core.model import HeldKey, KeyShown, Mode, Residency
from tests.scheduler.core.world import GIB, Peer, World, manifest, offer


def set_(world: World, circuit: str, wish: Residency, prover_id: str = "") -> int:
    """Set a residency; return the host bytes it changes, in GiB."""
    changed = world.core.residency_change(manifest(circuit), prover_id, wish)
    world.do(ev.ResidencySet(manifest(circuit), prover_id, wish))
    return changed.host // GIB


def keys(peer: Peer) -> set[bytes]:
    return set(peer.world.core.desired(peer.session).keys)


def two_circuits(total_gib: float) -> tuple[World, Peer]:
    """A prover of that size; each circuit takes a key of 4 GiB and 3 GiB of working set."""
    world = World("a", "b")
    offers = (offer("a", 4, 3), offer("b", 4, 3))
    return world, Peer(world, "gpu-0", *offers, total_gib=total_gib).connect()


def test_a_pinned_key_is_wanted_though_nobody_needs_it() -> None:
    world, peer = two_circuits(16)
    assert set_(world, "a", Residency.PINNED) == 4
    assert keys(peer) == {manifest("a")}
    assert set_(world, "a", Residency.PINNED) == 0


def test_a_pinned_key_is_never_evicted_for_another() -> None:
    world, peer = two_circuits(10)
    set_(world, "a", Residency.PINNED)
    peer.sync()
    world.submit("j", circuit="b")
    peer.sync()
    assert peer.wanted() == []
    assert keys(peer) == {manifest("a")}
    assert world.core.partitions("j")[0].waiting_for == (
        "unschedulable: gpu-0: needs 7.0 GiB, holds 6.0 GiB when empty beside its pinned keys"
    )
    set_(world, "a", Residency.AUTO)
    peer.sync()
    assert peer.sync() is not None
    assert peer.wanted() == [("j", 0)]


def test_a_prover_that_holds_a_circuit_beside_its_pinned_keys_accepts_it() -> None:
    world, peer = two_circuits(11)
    set_(world, "a", Residency.PINNED)
    peer.sync()
    world.submit("j", circuit="b")
    assert peer.wanted() == [("j", 0)]


def test_small_work_does_not_keep_a_pinned_key_out() -> None:
    world, peer = two_circuits(14)
    world.submit("j", 6, circuit="a")
    assert len(peer.wanted()) == 3
    set_(world, "b", Residency.PINNED)
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.sync()
    assert len(peer.wanted()) == 2
    assert manifest("b") in keys(peer)
    peer.prove(peer.lease_of("j", 1))
    peer.sync()
    assert len(peer.wanted()) == 2


def test_a_pinned_key_that_waits_for_room_keeps_it_from_work_that_would_fit() -> None:
    world = World("a", "b")
    peer = Peer(world, "gpu-0", offer("a", 4, 3), offer("b", 6, 3), total_gib=13).connect()
    world.submit("j", 4, circuit="a")
    assert len(peer.wanted()) == 3
    set_(world, "b", Residency.PINNED)
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.sync()
    assert peer.wanted() == [("j", 1), ("j", 2)]
    assert keys(peer) == {manifest("a")}
    assert world.core.partitions("j")[3].waiting_for == "needs 3.0 GiB on gpu-0, 0.0 free"
    peer.prove(peer.lease_of("j", 1))
    peer.sync()
    assert keys(peer) == {manifest("a"), manifest("b")}
    assert peer.wanted() == [("j", 2)]


def test_a_pinned_key_that_is_idle_is_not_what_makes_room_for_a_head() -> None:
    world = World("a", "b", "c")
    offers = (offer("a", 4, 3), offer("b", 4, 3), offer("c", 4, 3))
    peer = Peer(world, "gpu-0", *offers, total_gib=12).connect()
    set_(world, "a", Residency.PINNED)
    peer.sync()
    world.run(1)
    world.submit("j", circuit="b")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    peer.sync()
    peer.sync()
    assert keys(peer) == {manifest("a"), manifest("b")}
    world.submit("k", circuit="c")
    assert keys(peer) == {manifest("a")}
    peer.sync()
    assert peer.wanted() == [("k", 0)]


def test_idle_keys_make_room_for_a_pinned_one() -> None:
    world, peer = two_circuits(7)
    world.submit("j", circuit="a")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    peer.sync()
    set_(world, "b", Residency.PINNED)
    assert keys(peer) == set()
    peer.sync()
    assert keys(peer) == {manifest("b")}


def test_an_evicted_key_goes_once_it_is_idle_and_comes_back_when_needed() -> None:
    world, peer = two_circuits(16)
    world.submit("j", circuit="a")
    peer.sync()
    assert set_(world, "a", Residency.EVICTED) == 4
    assert keys(peer) == {manifest("a")}
    peer.prove(peer.lease_of("j"))
    peer.sync()
    assert keys(peer) == set()
    world.submit("k", circuit="a")
    assert keys(peer) == {manifest("a")}
    peer.sync()
    peer.prove(peer.lease_of("k"))
    peer.sync()
    peer.report()
    assert keys(peer) == {manifest("a")}


def test_evicting_a_pinned_key_unpins_it() -> None:
    world, peer = two_circuits(16)
    set_(world, "a", Residency.PINNED)
    peer.sync()
    assert set_(world, "a", Residency.EVICTED) == 4
    assert keys(peer) == set()
    peer.sync()
    assert keys(peer) == set()


def test_a_wish_for_one_prover_goes_before_the_wish_for_all() -> None:
    world, one = two_circuits(16)
    two = Peer(world, "gpu-1", *one.hello.offers, total_gib=16).connect()
    set_(world, "a", Residency.PINNED)
    assert set_(world, "a", Residency.EVICTED, "gpu-1") == 4
    assert (keys(one), keys(two)) == ({manifest("a")}, set())
    assert set_(world, "a", Residency.AUTO) == 4
    assert set_(world, "a", Residency.PINNED, "gpu-1") == 4
    assert manifest("a") in keys(two)
    assert {(pin.prover_id, pin.pinned) for pin in world.store.pins.values()} == {("gpu-1", True)}


def test_pins_survive_a_restart_and_reach_provers_that_come_later() -> None:
    world, _ = two_circuits(16)
    set_(world, "a", Residency.PINNED)
    set_(world, "b", Residency.PINNED, "gpu-7")
    world.boot()
    later = Peer(world, "gpu-7", offer("a", 4, 3), offer("b", 4, 3), total_gib=16).connect()
    other = Peer(world, "gpu-8", offer("a", 4, 3), offer("b", 4, 3), total_gib=16).connect()
    assert keys(later) == {manifest("a"), manifest("b")}
    assert keys(other) == {manifest("a")}


def test_a_pinned_key_that_failed_is_not_tried_again_and_takes_nothing_away() -> None:
    world, peer = two_circuits(10)
    set_(world, "a", Residency.PINNED)
    peer.sync()
    peer.keys[manifest("a")] = HeldKey(
        manifest("a"), KeyShown.FAILED, peer.keys[manifest("a")].held, 0, "linearity failed"
    )
    peer.report()
    peer.sync()
    assert keys(peer) == set()
    world.submit("j", circuit="b")
    assert peer.wanted() == [("j", 0)]


def test_a_key_larger_than_its_prover_cannot_be_pinned_and_takes_nothing_away() -> None:
    world = World("a", "b")
    peer = Peer(world, "gpu-0", offer("a", 40, 3), offer("b", 4, 3), total_gib=10).connect()
    set_(world, "a", Residency.PINNED)
    world.submit("j", circuit="b")
    assert peer.wanted() == [("j", 0)]


def test_nothing_is_loaded_on_a_prover_that_takes_no_leases() -> None:
    world, peer = two_circuits(16)
    world.do(ev.ModeSet("gpu-0", Mode.CORDONED))
    set_(world, "a", Residency.PINNED)
    assert keys(peer) == set()
    world.do(ev.ModeSet("gpu-0", Mode.ACTIVE))
    assert keys(peer) == {manifest("a")}
