"""Identity, acceptance, cancel, deadlines, waiters and retention of jobs."""

from __future__ import annotations

import pytest

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.errors import JobUnknown
from partita.scheduler.core.model import (
    FailureKind,
    JobState,
    PartitionState,
    Phase,
    Priority,
)
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World, offer


def answers(effects: list[fx.Effect]) -> list[tuple[str, bool]]:
    return [(e.job_id, e.attached) for e in effects if isinstance(e, fx.Accept)]


def refusals(effects: list[fx.Effect]) -> list[str]:
    return [e.reason for e in effects if isinstance(e, fx.Refuse)]


def finish_all(peer: Peer) -> None:
    peer.sync()
    for lease_id in list(peer.leases):
        peer.prove(lease_id)
    peer.sync()


def test_a_job_is_accepted_only_when_it_is_durable_and_starts_only_then() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.store_up = False

    assert answers(world.submit("j", 2)) == []
    assert peer.wanted() == []
    with pytest.raises(JobUnknown, match="'j' is unknown"):
        world.core.status("j")

    assert answers(world.save()) == [("j", False)]
    assert peer.wanted() == [("j", 0), ("j", 1)]


def test_ten_partitions_come_back_as_ten_proofs_in_order_each_against_its_own_statement() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=10).connect()
    world.submit("j", 10)

    peer.sync()
    for index in (7, 3, 9, 0, 1, 2, 4, 5, 6, 8):
        peer.prove(peer.lease_of("j", index))

    assert world.core.status("j").state is PublicState.COMPLETED
    parts = world.core.partitions("j")
    assert [p.proof for p in parts] == [f"proof of statement of j/{i}".encode() for i in range(10)]
    assert [p.statement for p in parts] == [f"statement of j/{i}".encode() for i in range(10)]


def test_64_callers_that_submit_the_same_job_at_once_make_one_run() -> None:
    world = World()
    Peer(world, "gpu-0").connect()
    world.store_up = False

    for number in range(64):
        world.submit(f"j{number}", request_id="r")
    answered = answers(world.save())

    assert answered == [("j0", False)] + [("j0", True)] * 63
    assert len(world.persisted(rec.LeaseRecord)) == 1


def test_one_request_id_with_different_inputs_is_two_independent_jobs() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()

    world.submit("one", request_id="r", digest=b"1")
    world.submit("two", request_id="r", digest=b"2")
    finish_all(peer)

    assert world.core.partitions("one")[0].proof == b"proof of statement of one/0"
    assert world.core.partitions("two")[0].proof == b"proof of statement of two/0"


def test_an_empty_request_id_always_makes_a_new_job() -> None:
    world = World()
    assert answers(world.submit("one")) == [("one", False)]
    assert answers(world.submit("two")) == [("two", False)]


def test_a_completed_job_is_answered_with_its_kept_result() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("one", request_id="r")
    finish_all(peer)

    assert answers(world.submit("two", request_id="r")) == [("one", True)]
    assert len(world.persisted(rec.LeaseRecord)) == 1


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_failed_or_cancelled_job_submitted_again_is_a_new_job(how: str) -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("one", request_id="r")
    peer.sync()
    if how == "cancelled":
        world.do(ev.CancelRequested("one", "me"))
    else:
        peer.fail(peer.lease_of("one"), FailureKind.INVALID_INPUT)

    assert answers(world.submit("two", request_id="r")) == [("two", False)]
    peer.sync()
    peer.prove(peer.lease_of("two"))
    assert world.core.status("two").state is PublicState.COMPLETED


def test_a_job_that_is_ending_counts_as_its_outcome() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("one", request_id="r")
    world.submit("gone", request_id="g")
    peer.sync()
    world.store_up = False
    peer.prove(peer.lease_of("one"))
    world.do(ev.CancelRequested("gone", "me"))

    assert answers(world.submit("two", request_id="r")) == []
    assert answers(world.submit("new", request_id="g")) == []
    assert world.core.status("one").state is PublicState.RUNNING
    assert sorted(answers(world.save())) == [("new", False), ("one", True)]


def test_attaching_raises_the_priority_and_never_lowers_it() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=1, express=0).connect()
    world.submit("busy")
    world.submit("other", request_id="o")
    world.submit("mine", request_id="m", priority=Priority.LOW)

    effects = world.submit("again", request_id="m", priority=Priority.HIGH)
    assert answers(effects) == [("mine", True)]
    assert world.store.jobs["mine"].job.priority is Priority.HIGH
    world.submit("again", request_id="m", priority=Priority.LOW)
    assert world.core.status("mine").priority is Priority.HIGH

    finish_all(peer)
    assert peer.wanted() == [("mine", 0)]


def test_a_raised_priority_reaches_the_leases_that_are_held() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", request_id="r")
    peer.sync()

    effects = world.submit("k", request_id="r", priority=Priority.CRITICAL)
    assert fx.SyncProver(peer.session) in effects
    order = world.core.desired(peer.session).leases[0]
    assert order.priority is Priority.CRITICAL


def test_attaching_keeps_the_laxer_deadline() -> None:
    world = World()
    near, far = world.now + 10 * SECOND_NS, world.now + 99 * SECOND_NS
    world.submit("j", request_id="r", deadline_ns=near)
    world.submit("k", request_id="r", deadline_ns=far)
    assert world.core.status("j").deadline_ns == far
    world.submit("k", request_id="r")
    assert world.core.status("j").deadline_ns is None

    world.run(200)
    assert world.core.status("j").state is PublicState.QUEUED


def test_cancel_stops_queued_partitions_at_once_and_revokes_the_held_ones() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=1, express=0).connect()
    world.submit("j", 3)
    peer.sync()

    effects = world.do(ev.CancelRequested("j", "me"))
    assert fx.SyncProver(peer.session) in effects
    assert peer.wanted() == []
    view = world.core.status("j")
    assert view.state is PublicState.CANCELLED
    assert view.failure is not None
    assert view.failure.detail == "cancelled by me"
    assert {p.state for p in world.core.partitions("j")} == {PartitionState.DROPPED}


def test_cancel_is_idempotent_and_does_not_change_a_terminal_job() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    finish_all(peer)
    before = world.core.digest()
    world.do(ev.CancelRequested("j", "me"))
    world.do(ev.CancelRequested("nobody", "me"))
    assert world.core.digest() == before


def test_a_job_cancelled_while_its_acceptance_is_not_durable_is_still_accepted_first() -> None:
    world = World()
    Peer(world, "gpu-0").connect()
    world.store_up = False
    world.submit("j")
    world.do(ev.CancelRequested("j", "me"))

    effects = world.save()
    assert answers(effects) == [("j", False)]
    assert world.core.status("j").state is PublicState.CANCELLED
    assert world.persisted(rec.LeaseRecord) == []


def test_a_deadline_fails_the_job_at_its_nanosecond_and_not_before() -> None:
    world = World()
    world.submit("j", deadline_ns=world.now + 10 * SECOND_NS)
    world.run(9.999_999_999)
    assert world.core.status("j").state is PublicState.QUEUED
    world.run(0.000_000_001)
    view = world.core.status("j")
    assert view.failure is not None
    assert (view.state, view.failure.reason) == (PublicState.FAILED, "DEADLINE_EXCEEDED")


def test_a_job_that_nobody_waits_for_is_abandoned_only_if_it_asked_for_it() -> None:
    world = World()
    world.submit("keeps")
    world.submit("j", abandon_after_ns=5 * SECOND_NS)
    world.do(ev.WaiterJoined("j", 7))
    world.run(60)
    assert world.core.status("j").state is PublicState.QUEUED

    world.do(ev.WaiterLeft("j", 7))
    world.run(5)
    view = world.core.status("j")
    assert view.failure is not None
    assert (view.state, view.failure.reason) == (PublicState.CANCELLED, "ABANDONED")
    assert world.core.status("keeps").state is PublicState.QUEUED


def test_waiters_are_answered_when_the_outcome_is_durable_and_late_ones_at_once() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    world.do(ev.WaiterJoined("j", 7))
    peer.sync()
    world.store_up = False
    effects = peer.prove(peer.lease_of("j"))
    assert [e for e in effects if isinstance(e, fx.AnswerWaiter)] == []
    assert fx.AnswerWaiter(7, "j") in world.save()
    assert world.do(ev.WaiterJoined("j", 8)) == [fx.AnswerWaiter(8, "j")]


def test_a_partition_counts_as_done_only_when_its_proof_is_durable() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    peer.sync()
    world.store_up = False
    peer.prove(peer.lease_of("j"))
    assert world.core.status("j").partitions_done == 0
    world.save()
    assert world.core.status("j").partitions_done == 1


def test_a_result_is_forgotten_after_its_retention_with_everything_it_had() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", request_id="r", retain_ns=60 * SECOND_NS)
    finish_all(peer)
    world.run(59)
    assert world.core.status("j").state is PublicState.COMPLETED
    world.run(1)
    with pytest.raises(JobUnknown):
        world.core.status("j")
    assert world.store.jobs == {}
    assert world.store.partitions == {}
    assert answers(world.submit("k", request_id="r")) == [("k", False)]


def test_kept_results_are_bounded_by_bytes_and_the_oldest_goes_first() -> None:
    world = World(config=CoreConfig(retain_bytes=100))
    peer = Peer(world, "gpu-0").connect()
    for job_id in ("one", "two", "three"):
        world.submit(job_id)
        finish_all(peer)
    assert [job.job_id for job in world.core.jobs()] == ["two", "three"]


def test_inputs_are_dropped_at_once_after_success_and_an_hour_after_anything_else() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("good")
    finish_all(peer)
    assert fx.DropInputs("good") in world.effects
    world.submit("bad")
    world.do(ev.CancelRequested("bad", "me"))
    world.run(3_599)
    assert fx.DropInputs("bad") not in world.effects
    world.run(1)
    assert fx.DropInputs("bad") in world.effects


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        ({"circuit": "nope"}, "UNKNOWN_CIRCUIT", "'nope'"),
        ({"n": 0}, "BAD_INPUT", "at least one"),
        ({"n": 4}, "QUEUE_FULL", "0 of 3 partitions"),
    ],
)
def test_a_submission_that_cannot_be_served_is_refused_and_changes_nothing(
    change: dict[str, object], reason: str, says: str
) -> None:
    world = World(config=CoreConfig(max_open_partitions=3))
    before = world.core.digest()
    effects = world.submit("j", **change)  # type: ignore[arg-type]
    assert refusals(effects) == [reason]
    refusal = effects[0]
    assert isinstance(refusal, fx.Refuse)
    assert says in refusal.detail
    assert world.core.digest() == before


def test_submissions_are_refused_while_too_much_is_unsaved_and_work_goes_on() -> None:
    world = World(config=CoreConfig(max_unsaved_records=3))
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    world.store_up = False
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.prove(peer.lease_of("j", 1))
    assert refusals(world.submit("k")) == ["STORE_BEHIND"]
    world.store_up = True
    world.save()
    assert refusals(world.submit("k")) == []


def test_a_circuit_that_no_connected_prover_could_hold_empty_is_refused_with_the_numbers() -> None:
    world = World("big")
    assert refusals(world.submit("waits", circuit="big")) == []
    for name, total_gib in (("gpu-0", 48), ("gpu-1", 64), ("gpu-2", 16)):
        Peer(world, name, offer("big", 40, 30), total_gib=total_gib).connect()
    (effect,) = world.submit("j", circuit="big")
    assert isinstance(effect, fx.Refuse)
    assert effect.reason == "TOO_LARGE_FOR_FLEET"
    assert "needs 40.0 GiB for its key and 30.0 GiB for a lease; gpu-1 comes" in effect.detail
    assert effect.detail.endswith("has 64.0 GiB")


def test_pages_of_jobs_are_stable_while_jobs_end() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    for number in range(5):
        world.submit(f"j{number}")
    first = world.core.jobs(limit=2)
    finish_all(peer)
    second = world.core.jobs(after_seq=first[-1].job_seq, limit=10)
    assert [j.job_id for j in first + second] == ["j0", "j1", "j2", "j3", "j4"]
    done = world.core.jobs(states=frozenset({PublicState.COMPLETED}))
    assert [j.job_id for j in done] == ["j0", "j1", "j2", "j3"]


def test_status_counts_what_is_ahead_and_expects_an_end() -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=2, express=0).connect()
    world.submit("first", 4)
    world.submit("low", 2, priority=Priority.LOW)
    world.submit("mine", 3)
    view = world.core.status("mine")
    assert view.partitions_ahead == 2
    assert view.expected_end_ns == world.now + 25 * SECOND_NS
    assert world.core.status("low").partitions_ahead == 5
    peer.hang_up()
    world.run(60)
    assert world.core.status("mine").expected_end_ns is None


def test_a_job_view_shows_the_phase_of_its_partitions() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    effects = peer.phase(peer.lease_of("j"), Phase.PROVING)
    assert fx.JobChanged("j") in effects
    part = world.core.partitions("j")[0]
    assert (part.state, part.phase, part.prover_id) == (
        PartitionState.LEASED,
        Phase.PROVING,
        "gpu-0",
    )
    assert world.store.jobs["j"].job.state is JobState.OPEN
