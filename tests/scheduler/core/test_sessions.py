"""Streams that open, break, freeze and compete; leases adopted, lost and settled."""

from __future__ import annotations

from dataclasses import replace

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.model import (
    Bytes,
    Failure,
    FailureKind,
    HeldLease,
    Mode,
    Phase,
    Priority,
    Proved,
    Verdict,
)
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import GIB, Peer, World, offer


def leases_granted(world: World) -> int:
    return len(world.persisted(rec.LeaseRecord))


def test_a_lease_waits_for_its_prover_for_the_grace_and_goes_on_when_it_returns() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    two = Peer(world, "gpu-1", slots=1).connect()
    world.submit("j")
    one.sync()
    one.hang_up()
    world.run(19.9)
    assert "come back" in world.core.partitions("j")[0].waiting_for
    two.report()
    one.connect()
    assert one.wanted() == [("j", 0)]
    one.prove(one.lease_of("j"))
    assert world.core.status("j").state is PublicState.COMPLETED
    assert leases_granted(world) == 1


def test_after_the_grace_the_partition_goes_elsewhere_with_its_old_key() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("old", 1)
    one.sync()
    two = Peer(world, "gpu-1", slots=1).connect()
    one.hang_up()
    world.submit("busy")
    world.submit("new")
    two.sync()
    world.run(20)
    two.report()
    two.prove(two.lease_of("busy"))
    assert ("old", 0) in two.wanted()


def test_critical_work_has_no_grace_where_another_prover_could_go_on() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j", priority=Priority.CRITICAL)
    one.sync()
    one.hang_up()
    world.run(0)
    assert world.core.partitions("j")[0].prover_id == "gpu-0"
    one.connect()
    two = Peer(world, "gpu-1").connect()
    one.hang_up()
    world.run(0)
    assert two.wanted() == [("j", 0)]


def test_another_instance_under_the_same_id_loses_the_leases_of_the_first() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    peer.die()
    peer.dial()
    assert world.core.partitions("j")[0].crashes == 1


def test_a_second_prover_with_a_live_id_is_turned_away() -> None:
    world = World()
    first = Peer(world, "gpu-0").connect()
    second = Peer(world, "gpu-0", instance="9")
    second.dial()
    assert world.closed == [(second.session, "PROVER_ID_IN_USE")]
    second.report()
    assert world.core.fleet().provers[0].session == first.session
    world.do(ev.SessionClosed(second.session))

    world.run(10.1)
    second.dial()
    assert world.closed[-1] == (first.session, "SUPERSEDED")
    assert world.core.fleet().provers[0].session == second.session


def test_the_same_instance_on_a_second_stream_wins_and_keeps_its_leases() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    old = peer.session
    peer.connect()
    assert (old, "SUPERSEDED") in world.closed
    assert peer.wanted() == [("j", 0)]
    before = world.core.digest()
    world.do(ev.SessionReported(old, world.core.fleet().provers[0].actual))  # type: ignore[arg-type]
    assert world.core.digest() == before


def test_a_scheduler_older_than_what_the_prover_has_seen_closes_the_stream() -> None:
    world = World()
    peer = Peer(world, "gpu-0")
    peer.hello = replace(peer.hello, highest_epoch=world.epoch + 1)
    peer.dial()
    assert world.closed == [(peer.session, "STALE_EPOCH")]


def test_a_desired_not_taken_in_for_a_minute_though_beats_come_closes_the_stream() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    peer.sync()
    world.submit("j")
    for _ in range(11):
        world.run(5)
        peer.report()
    assert world.closed == []
    world.run(5)
    assert world.closed == [(peer.session, "STUCK")]


def test_a_silent_prover_is_unresponsive_after_30_s_and_closed_after_5_minutes() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    peer.sync()
    world.run(29.9)
    assert not world.core.fleet().provers[0].unresponsive
    world.run(0.1)
    assert world.core.fleet().provers[0].unresponsive
    world.run(269)
    assert world.closed == []
    world.run(1)
    assert world.closed == [(peer.session, "STUCK")]


def test_a_stall_of_the_scheduler_itself_is_not_held_against_the_provers() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.now += 3_600 * SECOND_NS
    world._after(world.core.tick(world.now))
    assert not world.core.fleet().provers[0].unresponsive
    assert peer.wanted() == [("j", 0)]
    world.run(26)
    assert world.core.fleet().provers[0].unresponsive


def test_a_clean_close_gives_back_what_was_just_granted_at_once() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    two = Peer(world, "gpu-1").connect()
    one.hang_up(clean=True)
    assert two.wanted() == [("j", 0)]
    assert world.core.partitions("j")[0].failures == ()


def test_a_lease_leaves_desired_only_when_its_proof_is_durable() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.store_up = False
    peer.prove(peer.lease_of("j"))
    assert peer.wanted() == [("j", 0)]
    assert world.core.partitions("j")[0].proof == b""
    world.save()
    assert peer.wanted() == []
    assert world.core.partitions("j")[0].proof != b""


def test_a_lease_checking_when_its_session_closes_still_wins() -> None:
    world = World()
    world.auto_verify = False
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    peer.die()
    world.verdict(world.verifications()[0], Verdict.VALID)
    assert world.core.status("j").state is PublicState.COMPLETED
    assert leases_granted(world) == 1


def test_an_unverifiable_proof_whose_session_closed_puts_the_partition_back() -> None:
    world = World()
    world.auto_verify = False
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    one.sync()
    one.prove(one.lease_of("j"), good=False)
    one.die()
    two = Peer(world, "gpu-1").connect()
    world.verdict(world.verifications()[0], Verdict.INVALID)
    assert two.wanted() == [("j", 0)]


def test_a_charge_ends_only_when_the_prover_no_longer_shows_the_lease() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 3), total_gib=5).connect()
    world.submit("j")
    peer.sync()
    world.submit("k")
    world.do(ev.CancelRequested("j", "me"))
    peer.report()
    assert world.core.fleet().provers[0].charged == Bytes(5 * GIB)
    assert peer.wanted() == []
    peer.sync()
    assert peer.wanted() == [("k", 0)]


def test_a_revoked_lease_that_an_older_actual_does_not_list_yet_stays_charged() -> None:
    """The prover may have taken the grant in and be about to list it."""
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 3), total_gib=5).connect()
    world.submit("j")
    world.do(ev.CancelRequested("j", "me"))
    peer.report()
    assert world.core.fleet().provers[0].charged == Bytes(5 * GIB)
    peer.sync()
    assert world.core.fleet().provers[0].charged == Bytes(2 * GIB)


def test_the_undead_lease() -> None:
    """A times out and goes on; B is granted; both prove; the store is down; a crash."""
    world = World()
    world.auto_verify = False
    a = Peer(world, "a", offer("c", 2, 3), total_gib=5).connect()
    world.submit("j")
    a.sync()
    a.phase(a.lease_of("j"), Phase.PROVING)
    b = Peer(world, "b", offer("c", 2, 3), total_gib=5).connect()
    b.sync()
    for _ in range(60):
        world.run(5)
        a.report()
        b.report()
    assert (a.wanted(), b.wanted()) == ([], [("j", 0)])
    world.submit("k", 2)
    assert a.wanted() == []
    assert world.core.fleet().provers[0].charged == Bytes(5 * GIB)

    a.prove(a.lease_of("j"))
    b.sync()
    b.prove(b.lease_of("j"))
    late, right = world.verifications()
    world.store_up = False
    world.verdict(late, Verdict.VALID)
    world.verdict(right, Verdict.VALID)
    filled = [r for r in world.persisted(rec.PartitionRecord) if r.proof]  # type: ignore[attr-defined]
    assert len(filled) == 1
    assert ("j", 0) in b.wanted()

    world.auto_verify = True
    world.boot()
    b.connect()
    a.connect()
    for peer in (a, b) * 4:
        peer.sync()
        for lease_id, held in list(peer.leases.items()):
            if held.outcome is None:
                peer.prove(lease_id)
    states = {job.job_id: job.state for job in world.core.jobs()}
    assert states == {"j": PublicState.COMPLETED, "k": PublicState.COMPLETED}
    assert (a.leases, b.leases) == ({}, {})


def test_a_late_success_wins_and_the_holder_of_the_right_settles() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    one.sync()
    two = Peer(world, "gpu-1").connect()
    one.hang_up()
    world.run(20)
    two.sync()
    assert two.wanted() == [("j", 0)]
    one.connect()
    assert one.wanted() == []
    world.store_up = False
    one.prove(one.lease_of("j"))
    assert two.wanted() == [("j", 0)]
    world.save()
    assert two.wanted() == []
    assert world.core.partitions("j")[0].prover_id == "gpu-0"
    assert world.core.status("j").state is PublicState.COMPLETED


def test_a_lost_lease_that_returns_while_its_partition_waits_is_adopted() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.hang_up()
    world.run(60)
    peer.connect()
    assert peer.desired_ids() == ["1.1"]
    assert leases_granted(world) == 2
    assert world.core.partitions("j")[0].attempt == 1


def test_a_lease_whose_attempt_failed_is_not_adopted_again() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    for _ in range(60):
        world.run(5)
        peer.report()
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.TIMED_OUT
    peer.hang_up()
    peer.connect()
    assert "1.1" not in peer.desired_ids()
    assert world.core.fleet().provers[0].charged == Bytes(5 * GIB)


def test_an_unknown_lease_is_charged_and_leaves() -> None:
    world = World()
    peer = Peer(world, "gpu-0")
    peer.leases["7.7"] = HeldLease("7.7", "nobody", 0, 1, Phase.PROVING, Bytes(9 * GIB))
    peer.connect()
    assert world.core.fleet().provers[0].charged == Bytes(9 * GIB)
    assert peer.wanted() == []
    peer.sync()
    assert world.core.fleet().provers[0].charged == Bytes()


def test_a_prover_that_lists_somebody_elses_lease_is_closed() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    one.sync()
    two = Peer(world, "gpu-1")
    two.leases = dict(one.leases)
    two.connect()
    assert world.closed == [(two.session, "FOREIGN_LEASE")]
    assert one.wanted() == [("j", 0)]


def test_an_outcome_in_the_first_actual_is_taken() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.hang_up()
    lease_id = peer.lease_of("j")
    peer.leases[lease_id] = replace(
        peer.leases[lease_id], outcome=Proved(b"proof of statement of j/0")
    )
    peer.connect()
    assert world.core.status("j").state is PublicState.COMPLETED


def test_a_failure_in_the_first_actual_is_taken_once() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.hang_up()
    lease_id = peer.lease_of("j")
    peer.leases[lease_id] = replace(
        peer.leases[lease_id], outcome=Failure(FailureKind.COMPUTE, "CUDA")
    )
    peer.connect()
    peer.hang_up()
    peer.connect()
    assert len(world.core.partitions("j")[0].failures) == 1


def test_revisions_count_from_one_in_each_session() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    assert world.core.desired(peer.session).revision == 1
    world.submit("j")
    assert world.core.desired(peer.session).revision == 2
    peer.hang_up()
    peer.connect()
    assert world.core.desired(peer.session).revision == 1


def test_provers_that_come_and_go_under_new_names_do_not_pile_up() -> None:
    world = World(config=CoreConfig(max_known_provers=4))
    world.do(ev.ModeSet("cordoned", Mode.CORDONED))
    for number in range(20):
        peer = Peer(world, f"pod-{number}").connect()
        peer.hang_up(clean=True)
    known = [p.prover_id for p in world.core.fleet().provers]
    assert len(known) <= 4
    assert "cordoned" in known


def test_the_row_of_a_forgotten_prover_goes_with_it() -> None:
    world = World(config=CoreConfig(max_known_provers=4))
    for number in range(20):
        peer = Peer(world, f"pod-{number}").connect()
        for mode in (Mode.CORDONED, Mode.ACTIVE):
            world.do(ev.ModeSet(f"pod-{number}", mode))
        peer.hang_up(clean=True)
    assert len(world.store.provers) <= 4
    assert "pod-19" in world.store.provers


def test_a_changed_catalogue_reaches_every_prover() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    effects = world.do(ev.CatalogueChanged(b"r2", ()))
    assert effects == [fx.SyncProver(peer.session)]
    assert world.core.desired(peer.session).catalogue_revision == b"r2"
    assert world.do(ev.CatalogueChanged(b"r2", ())) == []
