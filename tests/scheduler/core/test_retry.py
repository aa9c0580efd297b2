"""RetryJob: a failed or cancelled job once more, with what it had proved."""

from __future__ import annotations

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core.config import CoreConfig
from partita.scheduler.core.model import CircuitInfo, FailureKind, Priority, Proved
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World, spec


def answer(effects: list[fx.Effect]) -> fx.Accept | fx.Refuse:
    (found,) = [e for e in effects if isinstance(e, fx.Accept | fx.Refuse)]
    return found


def accepted(effects: list[fx.Effect]) -> tuple[str, bool]:
    found = answer(effects)
    assert isinstance(found, fx.Accept), found
    return found.job_id, found.attached


def refused(effects: list[fx.Effect]) -> tuple[str, str]:
    found = answer(effects)
    assert isinstance(found, fx.Refuse), found
    return found.reason, found.detail


def half_done(world: World, **more: object) -> Peer:
    """Let job j prove partition 0 of 2, then fail."""
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2, **more)  # type: ignore[arg-type]
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    peer.sync()
    peer.fail(peer.lease_of("j", 1), FailureKind.INVALID_INPUT)
    peer.sync()
    assert world.core.status("j").state is PublicState.FAILED
    return peer


def test_a_retry_takes_over_what_was_proved_and_proves_only_the_rest() -> None:
    world = World()
    peer = half_done(world, request_id="r", priority=Priority.HIGH, labels=(("a", "b"),))
    before = world.core.partitions("j")[0]
    assert accepted(world.retry("j", "j2")) == ("j2", False)
    view = world.core.status("j2")
    assert (view.request_id, view.priority, view.labels) == ("r", Priority.HIGH, (("a", "b"),))
    assert view.partitions_done == 1
    taken = world.core.partitions("j2")[0]
    assert (taken.proof, taken.statement, taken.prover_id, taken.statement_source) == (
        before.proof,
        before.statement,
        before.prover_id,
        before.statement_source,
    )
    assert peer.wanted() == [("j2", 1)]
    peer.sync()
    peer.finish(peer.lease_of("j2", 1), _proved("j/1"))
    assert world.core.status("j2").state is PublicState.COMPLETED
    assert world.core.status("j").state is PublicState.FAILED


def _proved(tag: str) -> Proved:
    return Proved(b"proof of statement of " + tag.encode())


def test_a_retry_has_no_deadline() -> None:
    world = World()
    world.submit("j", deadline_ns=world.now + 10**9)
    world.run(2)
    assert world.core.status("j").state is PublicState.FAILED
    world.retry("j", "j2")
    world.run(100_000)
    assert world.core.status("j2").deadline_ns is None
    assert world.core.status("j2").state is PublicState.QUEUED


def test_a_job_retried_twice_is_one_job() -> None:
    world = World()
    half_done(world, request_id="r")
    assert accepted(world.retry("j", "j2")) == ("j2", False)
    assert accepted(world.retry("j", "j3")) == ("j2", True)
    assert len(world.core.jobs()) == 2


def test_a_job_without_a_request_id_retried_twice_is_one_job_also_after_a_restart() -> None:
    world = World()
    half_done(world)
    assert accepted(world.retry("j", "j2")) == ("j2", False)
    assert accepted(world.retry("j", "j3")) == ("j2", True)
    world.boot()
    assert accepted(world.retry("j", "j4")) == ("j2", True)


def test_a_submission_and_a_retry_of_one_identity_meet_in_one_job() -> None:
    world = World()
    half_done(world, request_id="r")
    world.retry("j", "j2")
    assert accepted(world.submit("j", 2, request_id="r"))[0] == "j2"
    world.do(ev.CancelRequested("j2", "me"))
    world.submit("k", 2, request_id="r")
    assert accepted(world.retry("j", "j3")) == ("k", True)


def test_a_retry_of_a_retry_keeps_every_proof() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 3, request_id="r")
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    world.do(ev.CancelRequested("j", "me"))
    world.retry("j", "j2")
    peer.sync()
    peer.finish(peer.lease_of("j2", 1), _proved("j/1"))
    world.do(ev.CancelRequested("j2", "me"))
    assert accepted(world.retry("j", "j3")) == ("j3", False)
    assert world.core.status("j3").partitions_done == 2


def test_only_failed_and_cancelled_jobs_can_be_retried() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    reason, detail = refused(world.retry("j", "x"))
    assert (reason, detail) == (
        "NOT_RETRYABLE",
        "job j is not over: only a FAILED or CANCELLED one can be retried",
    )
    peer.sync()
    peer.prove(peer.lease_of("j"))
    assert "COMPLETED" in refused(world.retry("j", "x"))[1]
    assert refused(world.retry("nobody", "x"))[0] == "JOB_UNKNOWN"


def test_an_end_that_is_not_durable_cannot_be_retried_yet() -> None:
    world = World()
    world.submit("j")
    world.store_up = False
    world.do(ev.CancelRequested("j", "me"))
    assert refused(world.retry("j", "x"))[0] == "NOT_RETRYABLE"
    world.store_up = True
    world.save()
    assert accepted(world.retry("j", "j2")) == ("j2", False)


def test_a_retry_is_answered_when_what_it_took_over_is_durable_too() -> None:
    world = World()
    half_done(world)
    world.store_up = False
    world.retry("j", "j2")
    assert not any(isinstance(e, fx.Accept) and e.job_id == "j2" for e in world.effects)
    for effect in world.unsaved[:-1]:
        world.store.write(effect.record)
    world.do(ev.Persisted(world.unsaved[-2].n))
    assert not any(isinstance(e, fx.Accept) and e.job_id == "j2" for e in world.effects)
    world.store_up = True
    assert accepted(world.save()) == ("j2", False)


def test_what_was_taken_over_survives_a_restart_and_is_not_proved_again() -> None:
    world = World()
    peer = half_done(world)
    world.retry("j", "j2")
    world.boot()
    peer.die()
    peer.connect()
    assert peer.wanted() == [("j2", 1)]
    assert world.core.partitions("j2")[0].proof == b"proof of statement of j/0"


def test_a_retry_needs_the_inputs_of_what_is_not_proved_only() -> None:
    world = World()
    half_done(world)
    needed = spec("j/1")
    assert world.core.inputs_to_retry("j") == [(needed.input, needed.inline)]
    world.retry("j", "j2")
    assert world.core.inputs_to_retry("j") == []


def test_inputs_in_rows_are_gone_when_their_time_is_over() -> None:
    world = World()
    half_done(world)
    world.run(3_599)
    assert world.core.inputs_to_retry("j")[0][1] == b"j/1"
    world.run(1)
    assert world.core.inputs_to_retry("j")[0][1] is None


def test_a_retry_is_refused_like_a_submission_when_the_queue_is_full() -> None:
    world = World(config=CoreConfig(max_open_jobs=1))
    half_done(world)
    world.submit("other")
    assert refused(world.retry("j", "j2"))[0] == "QUEUE_FULL"


def test_a_job_whose_circuit_has_other_files_now_cannot_be_retried() -> None:
    world = World()
    half_done(world)
    world.do(ev.CatalogueChanged(b"r2", (CircuitInfo("c", b"other", ("wtns",)),)))
    assert refused(world.retry("j", "j2")) == (
        "NOT_RETRYABLE",
        "circuit c has other files now: submit a new job",
    )
    world.do(ev.CatalogueChanged(b"r3", ()))
    assert refused(world.retry("j", "j2"))[0] == "UNKNOWN_CIRCUIT"


def test_a_retry_whose_slots_are_all_full_completes_at_once() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2, request_id="r")
    peer.sync()
    peer.prove(peer.lease_of("j", 0))
    world.do(ev.CancelRequested("j", "me"))
    parts = (spec("j/0"), spec("j/1"))
    world.do(ev.JobSubmitted("k", "r", b"d", "c", "wtns", parts, caller=99))
    peer.sync()
    peer.finish(peer.lease_of("k", 1), _proved("j/1"))
    world.do(ev.CancelRequested("k", "me"))
    assert accepted(world.retry("j", "j2")) == ("j2", False)
    assert world.core.status("j2").state is PublicState.COMPLETED


def test_the_retry_of_a_forgotten_job_is_forgotten_with_it() -> None:
    world = World()
    half_done(world, retain_ns=10**9)
    world.retry("j", "j2")
    world.do(ev.CancelRequested("j2", "me"))
    world.run(2)
    assert world.core.jobs() == []
    assert refused(world.retry("j", "j3"))[0] == "JOB_UNKNOWN"
