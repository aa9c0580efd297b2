"""A scheduler that dies and comes back from its store."""

from __future__ import annotations

from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS
from partita.scheduler.core.model import FailureKind, PartitionState, Phase
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World


def attempts(world: World) -> list[tuple[str, int, int]]:
    return [(g.job_id, g.index, g.attempt) for g in world.persisted(rec.LeaseRecord)]  # type: ignore[attr-defined]


def test_no_verified_partition_is_proved_again_after_a_restart() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 6)
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.prove(peer.lease_of("j", 2))

    world.boot()
    assert world.core.status("j").state is PublicState.RUNNING
    peer.connect()
    assert attempts(world) == [("j", 4, 2), ("j", 5, 2)]
    peer.sync()
    for lease_id in list(peer.leases):
        peer.prove(lease_id)
    assert world.core.status("j").state is PublicState.COMPLETED
    assert all(p.proof for p in world.core.partitions("j"))


def test_a_remembered_lease_is_held_for_its_prover_until_the_grace_passes() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    other = Peer(world, "gpu-1")
    world.submit("j")
    peer.sync()

    world.boot(listen=False)
    world.run(100)
    world.do(ev.ListenerOpened())
    other.connect()
    world.run(19)
    assert other.wanted() == []
    peer.connect()
    assert peer.wanted() == [("j", 0)]
    assert attempts(world) == []

    world.boot()
    other.connect()
    world.run(20)
    assert other.wanted() == [("j", 0)]
    part = world.core.partitions("j")[0]
    assert (part.failures, part.crashes, part.attempt) == ((), 0, 2)


def test_a_lease_that_the_scheduler_does_not_remember_is_adopted_by_job_and_index() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.store.leases.clear()
    world.boot()
    peer.connect()
    assert peer.wanted() == [("j", 0)]
    assert list(world.store.leases) == list(peer.leases)


def test_a_proof_finished_while_the_scheduler_was_away_is_taken() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.boot()
    lease_id = peer.lease_of("j")
    peer.dial()
    peer.prove(lease_id)
    assert world.core.status("j").state is PublicState.COMPLETED
    assert attempts(world) == []


def test_a_verdict_that_was_not_durable_is_reached_again() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.store_up = False
    peer.prove(peer.lease_of("j"))
    world.boot()
    peer.connect()
    assert world.core.status("j").state is PublicState.COMPLETED


def test_a_job_whose_last_proof_was_durable_and_its_end_was_not_ends_at_boot() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.store_up = False
    peer.prove(peer.lease_of("j"))
    cut = next(i for i, e in enumerate(world.unsaved) if isinstance(e.record, rec.JobRecord))
    for effect in world.unsaved[:cut]:
        world.store.write(effect.record)
    world.boot()
    assert world.core.status("j").state is PublicState.COMPLETED


def test_failures_attempts_and_exclusions_outlive_a_restart() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    other = Peer(world, "gpu-1")
    world.submit("j")
    peer.sync()
    peer.fail(peer.lease_of("j"), FailureKind.COMPUTE)
    world.boot()
    other.connect()
    peer.leases.clear()
    peer.connect()
    assert other.wanted() == [("j", 0)]
    assert world.core.partitions("j")[0].attempt == 2


def test_results_cancellations_and_identity_outlive_a_restart() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("done", request_id="d")
    world.submit("gone", 2)
    peer.sync()
    peer.prove(peer.lease_of("done"))
    world.do(ev.CancelRequested("gone", "me"))
    world.boot()
    assert world.core.status("done").state is PublicState.COMPLETED
    assert world.core.partitions("done")[0].proof == b"proof of statement of done/0"
    gone = world.core.partitions("gone")
    assert [p.state for p in gone] == [PartitionState.DROPPED] * 2
    world.submit("again", request_id="d")
    assert [job.job_id for job in world.core.jobs()] == ["done", "gone"]


def test_deadlines_and_retention_run_on_across_a_restart() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("done", retain_ns=60 * SECOND_NS)
    world.submit("late", deadline_ns=world.now + 30 * SECOND_NS)
    peer.sync()
    peer.prove(peer.lease_of("done"))
    world.boot()
    world.run(30)
    view = world.core.status("late")
    assert view.failure is not None
    assert view.failure.reason == "DEADLINE_EXCEEDED"
    world.run(30)
    assert "done" not in world.store.jobs


def test_a_job_that_was_not_durable_is_not_there_after_a_restart() -> None:
    world = World()
    world.store_up = False
    world.submit("j")
    world.boot()
    assert world.core.jobs() == []


def test_new_jobs_are_behind_restored_ones_and_lease_ids_are_never_reused() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=1, express=0).connect()
    world.submit("old", 2)
    peer.sync()
    world.boot()
    peer.connect()
    world.submit("new")
    peer.prove(peer.lease_of("old", 0))
    peer.sync()
    assert peer.wanted() == [("old", 1)]
    assert peer.desired_ids() == ["2.1"]


def test_crash_marks_outlive_a_restart_and_are_void_if_the_instance_returns() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    peer.hang_up()
    world.run(20)
    world.boot()
    assert world.core.partitions("j")[0].crashes == 1
    peer.connect()
    assert world.core.partitions("j")[0].crashes == 0


def test_time_does_not_run_backwards_and_the_mark_is_kept_within_a_second() -> None:
    world = World()
    for number in range(5):
        world.run(0.9)
        world.submit(f"j{number}")
        assert world.now - world.store.mark_ns <= SECOND_NS
