"""Who is granted what, where, and who waits."""

from __future__ import annotations

from dataclasses import replace

from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.model import (
    NOTHING,
    Bytes,
    Condition,
    FailureKind,
    Mode,
    Phase,
    Priority,
    Trust,
)
from tests.scheduler.core.world import GIB, Peer, World, manifest, offer


def test_partitions_go_by_class_then_age_then_index() -> None:
    world = World()
    world.submit("low", 1, priority=Priority.LOW)
    world.submit("old", 2)
    world.submit("new", 1)
    world.submit("now", 1, priority=Priority.CRITICAL)
    peer = Peer(world, "gpu-0", slots=5, express=0).connect()
    grants = [(g.job_id, g.index) for g in world.persisted(rec.LeaseRecord)]  # type: ignore[attr-defined]
    assert grants == [("now", 0), ("old", 0), ("old", 1), ("new", 0), ("low", 0)]
    assert peer.wanted() == grants


def test_critical_overtakes_waiting_work_and_has_an_express_slot() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=2, express=1).connect()
    world.submit("normal", 5)
    peer.sync()
    world.submit("now", 2, priority=Priority.CRITICAL)
    assert peer.wanted() == [("now", 0), ("normal", 0), ("normal", 1)]

    peer.sync()
    peer.prove(peer.lease_of("normal", 0))
    assert ("now", 1) in peer.wanted()
    assert ("normal", 2) not in peer.wanted()


def test_with_a_budget_for_two_never_more_than_two_are_held() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 3), total_gib=8, slots=8).connect()
    world.submit("j", 6)
    for _ in range(6):
        peer.sync()
        assert len(peer.leases) <= 2
        assert len(peer.wanted()) <= 2
        held = next(i for i, h in peer.leases.items() if h.outcome is None)
        peer.prove(held)
    peer.sync()
    assert world.core.status("j").partitions_done == 6


def test_a_small_partition_does_not_overtake_a_head_that_waits_for_memory() -> None:
    """Otherwise a steady stream of small partitions would starve a large one for ever."""
    world = World("big", "small")
    peer = Peer(world, "gpu-0", offer("big", 1, 6), offer("small", 1, 1), total_gib=10).connect()
    world.submit("b", 2, circuit="big")
    world.submit("s", 1, circuit="small")
    assert peer.wanted() == [("b", 0)]
    waiting = world.core.partitions("b")[1].waiting_for
    assert waiting == "needs 6.0 GiB on gpu-0, 3.0 free"

    peer.sync()
    peer.prove(peer.lease_of("b", 0))
    peer.sync()
    peer.sync()
    assert peer.wanted() == [("b", 1), ("s", 0)]


def test_a_head_claims_only_provers_that_it_could_ever_use() -> None:
    world = World("big", "small")
    large = Peer(world, "large", offer("big", 1, 6), offer("small", 1, 1), total_gib=10).connect()
    small = Peer(world, "small", offer("big", 1, 6), offer("small", 1, 1), total_gib=4).connect()
    world.submit("b", 2, circuit="big")
    world.submit("s", 1, circuit="small")
    assert large.wanted() == [("b", 0)]
    assert small.wanted() == [("s", 0)]


def test_an_unschedulable_head_delays_nobody_and_says_why_with_its_arithmetic() -> None:
    world = World("huge", "c")
    world.submit("h", circuit="huge")
    peer = Peer(world, "gpu-0", offer("huge", 60, 30), offer("c"), total_gib=64).connect()
    world.submit("j")
    assert peer.wanted() == [("j", 0)]
    why = world.core.partitions("h")[0].waiting_for
    assert why == "unschedulable: gpu-0: needs 90.0 GiB, holds 64.0 GiB when empty"

    large = Peer(world, "gpu-1", offer("huge", 60, 30), total_gib=100).connect()
    assert large.wanted() == [("h", 0)]


def test_nothing_is_granted_before_the_first_actual() -> None:
    world = World()
    world.submit("j")
    peer = Peer(world, "gpu-0")
    peer.dial()
    assert world.persisted(rec.LeaseRecord) == []
    peer.report()
    assert peer.wanted() == [("j", 0)]


def test_a_prover_that_drains_is_cordoned_or_distrusted_gets_nothing_new() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=1, express=0).connect()
    world.do(ev.ModeSet("gpu-0", Mode.CORDONED))
    world.submit("j")
    assert peer.wanted() == []
    assert world.core.partitions("j")[0].waiting_for == "unschedulable: gpu-0: cordoned"
    world.do(ev.ModeSet("gpu-0", Mode.ACTIVE))
    assert peer.wanted() == [("j", 0)]

    world.do(ev.TrustSet("gpu-0", Trust.QUARANTINED))
    world.submit("k")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    peer.sync()
    assert peer.wanted() == []
    world.do(ev.TrustSet("gpu-0", Trust.TRUSTED))
    assert peer.wanted() == [("k", 0)]
    peer.condition = Condition.DRAINING
    peer.sync()
    peer.prove(peer.lease_of("k"))
    world.submit("l")
    assert peer.wanted() == []


def test_drained_mode_is_shown_in_desired() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.do(ev.ModeSet("gpu-0", Mode.DRAINED))
    assert world.core.desired(peer.session).drain
    assert world.store.provers["gpu-0"].mode is Mode.DRAINED


def test_an_unresponsive_prover_gets_nothing_new_and_loses_nothing() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.run(30)
    world.submit("k")
    assert peer.wanted() == [("j", 0)]
    peer.report()
    assert peer.wanted() == [("j", 0), ("k", 0)]


def test_a_hot_prover_is_preferred_to_a_cold_one() -> None:
    world = World("a", "b")
    one = Peer(world, "gpu-0").connect()
    two = Peer(world, "gpu-1").connect()
    world.submit("a", circuit="a")
    one.sync()
    world.submit("b", circuit="b")
    two.sync()
    world.submit("b2", circuit="b")
    world.submit("a2", circuit="a")
    placed = {g.job_id: g.prover_id for g in world.persisted(rec.LeaseRecord)}  # type: ignore[attr-defined]
    assert placed["a2"] == placed["a"]
    assert placed["b2"] == placed["b"]


def test_a_head_prepares_one_prover_by_evicting_idle_keys_and_then_starts() -> None:
    world = World("a", "b")
    peer = Peer(world, "gpu-0", offer("a", 5, 3), offer("b", 5, 3), total_gib=10).connect()
    world.submit("a", circuit="a")
    peer.sync()
    world.submit("b", circuit="b")
    assert world.core.desired(peer.session).keys == (manifest("a"),)

    peer.prove(peer.lease_of("a"))
    peer.sync()
    assert world.core.desired(peer.session).keys == ()
    assert "unload another" in world.core.partitions("b")[0].waiting_for
    peer.sync()
    assert world.core.desired(peer.session).keys == (manifest("b"),)
    assert peer.wanted() == [("b", 0)]


def test_evict_against_want_takes_a_key_back_without_lowering_the_charge() -> None:
    """Head H prepares on P (key a unwanted); a CRITICAL C that needs key a arrives meanwhile."""
    world = World("a", "b")
    peer = Peer(world, "gpu-0", offer("a", 5, 3), offer("b", 5, 3), total_gib=10).connect()
    world.submit("warm", circuit="a")
    peer.sync()
    peer.prove(peer.lease_of("warm"))
    peer.sync()
    world.submit("h", circuit="b")
    assert world.core.desired(peer.session).keys == ()

    world.submit("c", circuit="a", priority=Priority.CRITICAL)
    assert world.core.desired(peer.session).keys == (manifest("a"),)
    assert peer.wanted() == [("c", 0)]
    assert world.core.fleet().provers[0].charged == Bytes(8 * GIB)

    peer.sync()
    peer.prove(peer.lease_of("c"))
    peer.sync()
    peer.sync()
    peer.sync()
    assert peer.wanted() == [("h", 0)]


def test_an_unwanted_key_that_an_older_actual_does_not_list_stays_charged() -> None:
    """The prover may be loading it: only an Actual that took in the removal proves it absent."""
    world = World("a", "b")
    peer = Peer(world, "gpu-0", offer("a", 5, 3), offer("b", 5, 3), total_gib=10).connect()
    world.submit("a", circuit="a")
    world.do(ev.CancelRequested("a", "me"))
    world.submit("b", circuit="b")
    peer.applied = world.core.desired(peer.session).revision
    peer.report()
    assert world.core.desired(peer.session).keys == ()
    peer.report()
    assert world.core.fleet().provers[0].charged == Bytes(5 * GIB)
    assert peer.wanted() == []
    peer.sync()
    assert peer.wanted() == [("b", 0)]


def test_a_head_whose_preparing_prover_stops_accepting_is_prepared_elsewhere() -> None:
    world = World("a", "b")
    peers = [
        Peer(world, f"gpu-{i}", offer("a", 5, 3), offer("b", 5, 3), total_gib=10, slots=2).connect()
        for i in range(2)
    ]
    world.submit("a", 2, circuit="a")
    for peer in peers:
        peer.sync()
    assert [p.wanted() for p in peers] == [[("a", 0)], [("a", 1)]]
    world.submit("b", circuit="b")
    world.do(ev.ModeSet("gpu-0", Mode.CORDONED))
    peers[1].prove(peers[1].lease_of("a", 1))
    for _ in range(3):
        peers[1].sync()
    assert peers[1].wanted() == [("b", 0)]


def switching(factor: int, older_jobs: int) -> bool:
    """Tell whether a cold prover with work of its own switches for `older_jobs` of key a."""
    world = World("a", "b", config=CoreConfig(key_switch_factor=factor))
    hot = Peer(world, "hot", offer("a", 5, 1), slots=1, express=0, total_gib=8).connect()
    world.submit("a0", circuit="a")
    hot.sync()
    cold = Peer(
        world, "cold", offer("a", 5, 1), offer("b", 1, 1), slots=1, express=0, total_gib=8
    ).connect()
    world.submit("b0", circuit="b")
    cold.sync()
    for number in range(older_jobs):
        world.submit(f"older{number}", circuit="a")
    world.submit("b1", circuit="b")
    cold.prove(cold.lease_of("b0"))
    (job, _), *_ = [w for w in cold.wanted() if w[0] != "b0"]
    return job != "b1"


def test_a_key_switch_must_pay() -> None:
    """10 s of work each against 60 s of load: with f = 2 the 13th older partition tips it."""
    assert not switching(2, 12)
    assert switching(2, 13)


def test_factor_zero_is_strict_order() -> None:
    assert switching(0, 1)


def test_a_partition_runs_alone_from_its_second_crash_on() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=4).connect()
    world.submit("j")
    for _ in range(2):
        peer.sync()
        peer.phase(peer.lease_of("j"), Phase.PROVING)
        peer.die()
        peer.connect()
    assert world.core.partitions("j")[0].crashes == 2
    world.submit("k", 2)
    assert peer.wanted() == [("j", 0)]
    peer.sync()
    peer.prove(peer.lease_of("j"))
    assert peer.wanted() == []
    peer.sync()
    assert peer.wanted() == [("k", 0), ("k", 1)]


def test_a_lone_partition_waits_for_an_empty_prover_and_nobody_passes_it() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=1).connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    peer.die()
    peer.connect()
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    other = Peer(world, "gpu-1", slots=4).connect()
    world.submit("k")
    peer.die()
    other.sync()
    world.run(20)
    world.submit("l")
    assert other.wanted() == [("k", 0)]
    assert "empty prover" in world.core.partitions("j")[0].waiting_for
    other.prove(other.lease_of("k"))
    other.sync()
    other.sync()
    assert other.wanted() == [("j", 0)]


def test_at_quiescence_nothing_is_charged_but_idle_keys() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 3)).connect()
    world.submit("j", 3)
    world.submit("gone", 1)
    peer.sync()
    world.do(ev.CancelRequested("gone", "me"))
    for index in range(3):
        peer.prove(peer.lease_of("j", index))
    peer.sync()
    peer.sync()
    view = world.core.fleet().provers[0]
    assert view.charged == Bytes(2 * GIB)
    assert view.actual is not None
    assert view.actual.leases == ()


def test_a_lease_that_does_not_leave_no_longer_counts_as_memory_that_comes_back() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 30), total_gib=40).connect()
    world.submit("stuck")
    peer.sync()
    world.do(ev.CancelRequested("stuck", "me"))
    world.submit("j")
    for _ in range(13):
        peer.applied = world.core.desired(peer.session).revision
        peer.report()
        world.run(5)
    why = world.core.partitions("j")[0].waiting_for
    assert why == "unschedulable: gpu-0: needs 32.0 GiB, holds 10.0 GiB when empty"


def test_a_measured_excess_is_charged_in_full_and_raises_the_peak() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 3), total_gib=64).connect()
    world.submit("j", 2)
    peer.sync()
    held = peer.leases[peer.lease_of("j", 0)]
    peer.leases[held.lease_id] = type(held)(
        held.lease_id, "j", 0, held.attempt, Phase.PROVING, Bytes(7 * GIB)
    )
    peer.report()
    assert world.core.fleet().provers[0].charged == Bytes((2 + 7 + 3) * GIB)
    world.submit("k")
    order = next(o for o in world.core.desired(peer.session).leases if o.job_id == "k")
    assert order.reserved == Bytes(7 * GIB)


def test_the_charge_shrinks_when_the_prover_reports_a_release() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 4), total_gib=9).connect()
    world.submit("j", 2)
    peer.sync()
    assert peer.wanted() == [("j", 0)]
    lease_id = peer.lease_of("j", 0)
    held = peer.leases[lease_id]
    peer.leases[lease_id] = type(held)(lease_id, "j", 0, 1, Phase.FINISHING, Bytes(2 * GIB))
    peer.report()
    assert peer.wanted() == [("j", 0), ("j", 1)]


def test_resource_failures_raise_the_peak_by_a_tenth_until_the_offer_changes() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 10), total_gib=64).connect()
    world.submit("j")
    peer.sync()
    peer.fail(peer.lease_of("j"), FailureKind.RESOURCE)
    peer.sync()
    world.run(1)
    assert world.core.desired(peer.session).leases[0].reserved == Bytes(11 * GIB)

    loaded = replace(offer("c", 2, 10), load_time_ns=1)
    peer.hello = replace(peer.hello, offers=(loaded,))
    world.do(ev.OffersChanged(peer.session, peer.hello))
    world.submit("i")
    assert world.core.desired(peer.session).leases[1].reserved == Bytes(11 * GIB)

    peer.hello = replace(peer.hello, offers=(offer("c", 2, 9),))
    world.do(ev.OffersChanged(peer.session, peer.hello))
    world.submit("k")
    assert world.core.desired(peer.session).leases[2].reserved == Bytes(9 * GIB)


def test_a_gone_offer_grants_nothing_new_and_its_idle_key_is_unwanted() -> None:
    world = World("a", "b")
    peer = Peer(world, "gpu-0").connect()
    world.submit("a", circuit="a")
    peer.sync()
    peer.hello = type(peer.hello)("gpu-0", "gpu-0-1", Bytes(64 * GIB), 4, 1, offers=(offer("b"),))
    world.do(ev.OffersChanged(peer.session, peer.hello))
    world.submit("a2", circuit="a")
    assert peer.wanted() == [("a", 0)]
    assert world.core.desired(peer.session).keys == (manifest("a"),)
    peer.prove(peer.lease_of("a"))
    peer.leases.clear()
    peer.applied = world.core.desired(peer.session).revision
    peer.report()
    assert world.core.desired(peer.session).keys == ()
    assert world.core.partitions("a2")[0].waiting_for.endswith("offers circuit a")
    assert world.core.fleet().provers[0].charged != NOTHING


def test_inline_inputs_travel_only_until_the_lease_is_listed_and_within_their_budget() -> None:
    world = World(config=CoreConfig(inline_budget_bytes=4))
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    orders = world.core.desired(peer.session).leases
    assert [o.inline for o in orders] == [b"j/0", None]
    peer.sync()
    assert [o.inline for o in world.core.desired(peer.session).leases] == [None, None]


def test_a_lease_order_names_what_the_prover_needs() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", expected_s=100)).connect()
    world.submit("j", stated=False)
    order = world.core.desired(peer.session).leases[0]
    assert order.lease_id == "1.1"
    assert order.statement_sha256 == b""
    assert order.timeout_ns == 1_000 * SECOND_NS
    assert order.reserved == Bytes(3 * GIB)
