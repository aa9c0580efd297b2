"""The rules of the prover's core, one example each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import (
    NOTHING,
    Bytes,
    Condition,
    CoreBug,
    CoreConfig,
    Desired,
    Failure,
    FailureKind,
    KeyState,
    Phase,
    Priority,
    Proof,
)
from partita.prover.core.pipeline import PipelineCore
from tests.prover.core.driving import GIB, KEY, OTHER_KEY, SECOND, Driver, order


@pytest.fixture
def driver() -> Driver:
    return Driver(CoreConfig(total=Bytes(100 * GIB), synthesis_threads=1))


def test_a_lease_goes_through_every_phase_to_its_proof(driver: Driver) -> None:
    first = order("1.1", statement_sha256=b"")
    assert driver.desire(first) == [fx.FetchInput(first), fx.LoadKey(KEY, Bytes(5 * GIB))]
    assert driver.phase("1.1") is Phase.FETCHING
    driver.fetched("1.1")
    assert driver.phase("1.1") is Phase.FETCHING
    assert driver.loaded(KEY) == [fx.Synthesize(first, express=False)]
    assert driver.phase("1.1") is Phase.SYNTHESIZING
    driver.at(7 * SECOND)
    assert driver.synthesized("1.1", b"stated") == [fx.Prove(first)]
    assert driver.phase("1.1") is Phase.PROVING
    driver.do(ev.Released("1.1", Bytes(3 * GIB)))
    assert driver.lease("1.1").held == Bytes(3 * GIB)
    driver.do(ev.DeviceDone("1.1"))
    assert driver.phase("1.1") is Phase.FINISHING
    driver.at(9 * SECOND)
    assert driver.do(ev.Proved("1.1", b"proof", Bytes(8 * GIB))) == [fx.FreeLease("1.1")]
    assert driver.phase("1.1") is Phase.FINISHING
    driver.do(ev.LeaseFreed("1.1"))
    held = driver.lease("1.1")
    assert held.phase is Phase.FINISHED
    assert held.held == NOTHING
    assert isinstance(held.outcome, Proof)
    assert held.outcome.proof == b"proof"
    assert held.outcome.statement == b"stated"
    assert held.outcome.peak == Bytes(8 * GIB)
    assert held.outcome.timings.synthesis_ns == 7 * SECOND
    assert held.outcome.timings.device_ns == 2 * SECOND


def test_an_outcome_stays_in_every_actual_until_its_lease_is_not_desired(driver: Driver) -> None:
    driver.proved("1.1")
    driver.do(ev.LinkDown())
    driver.do(ev.LinkUp())
    assert isinstance(driver.lease("1.1").outcome, Proof)
    driver.desire()
    assert driver.actual.leases == ()


def test_the_statement_is_returned_only_when_the_lease_asks_for_it(driver: Driver) -> None:
    driver.proved("1.1", statement_sha256=driver.digest(b"stated"), statement=b"stated")
    outcome = driver.lease("1.1").outcome
    assert isinstance(outcome, Proof)
    assert outcome.statement == b""


def test_a_statement_that_differs_fails_before_the_device_is_taken(driver: Driver) -> None:
    driver.ready(order("1.1", statement_sha256=driver.digest(b"other")))
    assert driver.synthesized("1.1", b"stated") == [fx.FreeLease("1.1")]
    outcome = driver.lease("1.1").outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.reason) == (FailureKind.INVALID_INPUT, "STATEMENT_MISMATCH")
    assert driver.digest(b"stated").hex() in outcome.detail


def test_critical_overtakes_waiting_normal_leases_on_the_device(driver: Driver) -> None:
    for n in range(4):
        driver.ready(order(f"1.{n}", job_seq=n))
        driver.synthesized(f"1.{n}")
    critical = order("2.1", job_seq=99, priority=Priority.CRITICAL)
    driver.ready(critical)
    driver.synthesized("2.1")
    assert driver.phase("1.0") is Phase.PROVING
    assert driver.do(ev.DeviceDone("1.0")) == [fx.Prove(critical)]
    assert driver.phase("1.1") is Phase.WAITING_FOR_DEVICE


def test_critical_has_a_synthesis_thread_that_normal_work_never_takes(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.ready(order("1.2", job_seq=2))
    assert driver.phase("1.2") is Phase.WAITING_FOR_SYNTHESIS
    critical = order("2.1", job_seq=9, priority=Priority.CRITICAL)
    assert driver.ready(critical) == [fx.Synthesize(critical, express=True)]
    driver.ready(order("2.2", job_seq=10, priority=Priority.CRITICAL))
    assert driver.phase("2.2") is Phase.WAITING_FOR_SYNTHESIS


def test_synthesis_takes_the_least_key_first(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.ready(order("1.2", job_seq=5))
    driver.ready(order("1.3", job_seq=2, partition_index=1))
    earlier = order("1.4", job_seq=2, partition_index=0)
    driver.ready(earlier)
    assert fx.Synthesize(earlier, express=False) in driver.synthesized("1.1")


def test_a_raised_priority_reorders_what_is_held(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.ready(order("1.2", job_seq=2))
    late = order("1.3", job_seq=3)
    driver.ready(late)
    raised = replace(late, priority=Priority.HIGH)
    driver.desire(raised, also=("1.1", "1.2"))
    assert fx.Synthesize(raised, express=False) in driver.synthesized("1.1")


def test_the_device_is_exclusive_until_its_work_is_done(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.synthesized("1.1")
    driver.ready(order("1.2", job_seq=2))
    assert fx.Prove(order("1.2", job_seq=2)) not in driver.synthesized("1.2")
    assert fx.Prove(order("1.2", job_seq=2)) in driver.do(ev.DeviceDone("1.1"))


def test_a_lease_stopped_on_the_device_keeps_it_until_the_stage_has_ended(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.synthesized("1.1")
    driver.ready(order("1.2", job_seq=2))
    driver.synthesized("1.2")
    assert driver.desire(order("1.2", job_seq=2)) == [fx.StopStage("1.1")]
    assert driver.phase("1.1") is Phase.STOPPING
    assert driver.lease("1.1").held == Bytes(10 * GIB)
    assert driver.do(ev.StageStopped("1.1")) == [
        fx.FreeLease("1.1"),
        fx.Prove(order("1.2", job_seq=2)),
    ]


def test_a_stopped_lease_is_listed_until_its_memory_is_given_back(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.desire()
    driver.do(ev.StageStopped("1.1"))
    assert driver.lease("1.1").held == Bytes(10 * GIB)
    driver.do(ev.LeaseFreed("1.1"))
    assert driver.actual.leases == ()


def test_a_proof_of_a_lease_that_is_not_desired_is_forgotten(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.synthesized("1.1")
    driver.desire()
    assert driver.do(ev.Proved("1.1", b"late", NOTHING)) == [fx.FreeLease("1.1")]
    assert driver.lease("1.1").outcome is None
    driver.do(ev.LeaseFreed("1.1"))
    assert driver.actual.leases == ()


def test_a_lease_desired_again_while_it_stops_starts_anew_once_it_is_freed(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.desire()
    driver.desire(order("1.1"))
    assert driver.phase("1.1") is Phase.STOPPING
    driver.do(ev.StageStopped("1.1"))
    assert driver.do(ev.LeaseFreed("1.1")) == [fx.FetchInput(order("1.1"))]
    assert driver.phase("1.1") is Phase.FETCHING


def test_a_desired_older_than_the_newest_changes_nothing(driver: Driver) -> None:
    driver.desire(order("1.1"))
    newest = driver.actual
    driver.do(ev.DesiredReceived(Desired(epoch=1, revision=1)))
    assert driver.actual == newest


def test_a_new_session_starts_at_applied_zero_and_keeps_what_is_held(driver: Driver) -> None:
    driver.desire(order("1.1"))
    driver.do(ev.LinkDown())
    driver.do(ev.LinkUp())
    assert driver.actual.applied == 0
    assert driver.phase("1.1") is Phase.FETCHING
    driver.do(ev.DesiredReceived(Desired(epoch=1, revision=1, leases=(order("1.1"),))))
    assert driver.actual.applied == 1


def test_without_a_scheduler_what_is_held_goes_on(driver: Driver) -> None:
    driver.desire(order("1.1"))
    driver.do(ev.LinkDown())
    driver.fetched("1.1")
    assert fx.Synthesize(order("1.1"), express=False) in driver.loaded(KEY)


def test_outcomes_without_a_scheduler_are_kept_for_the_orphan_ttl(driver: Driver) -> None:
    driver.proved("1.1")
    driver.at(100 * SECOND)
    driver.do(ev.LinkDown())
    ttl = driver.core.config.orphan_ttl_ns
    assert driver.core.next_deadline_ns() == 100 * SECOND + ttl
    driver.at(99 * SECOND + ttl)
    driver.tick()
    assert len(driver.actual.leases) == 1
    driver.at(100 * SECOND + ttl)
    driver.tick()
    assert not driver.actual.leases


def test_a_lease_beyond_the_total_is_refused_with_its_arithmetic(driver: Driver) -> None:
    driver.desire(order("1.1", reserved=Bytes(101 * GIB)), keys=())
    outcome = driver.lease("1.1").outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.reason) == (FailureKind.RESOURCE, "OVER_BUDGET")
    assert str(101 * GIB) in outcome.detail


def test_a_key_waits_for_room_and_is_loaded_when_there_is_some(driver: Driver) -> None:
    driver.desire(order("1.1", reserved=Bytes(97 * GIB)))
    assert driver.key(KEY).state is KeyState.LOADING
    assert driver.key(KEY).held == NOTHING
    driver.desire()
    driver.do(ev.StageStopped("1.1"))
    assert driver.do(ev.LeaseFreed("1.1")) == [fx.LoadKey(KEY, Bytes(5 * GIB))]


def test_a_key_is_unloaded_only_when_no_lease_refers_to_it(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.desire(order("1.1"), keys=())
    assert driver.key(KEY).state is KeyState.READY
    assert driver.key(KEY).references == 1
    driver.desire(keys=())
    driver.do(ev.StageStopped("1.1"))
    assert driver.key(KEY).state is KeyState.READY
    assert driver.do(ev.LeaseFreed("1.1")) == [fx.UnloadKey(KEY)]
    assert driver.key(KEY).state is KeyState.LEAVING
    assert driver.key(KEY).held == Bytes(5 * GIB)
    driver.do(ev.KeyUnloaded(KEY))
    assert driver.actual.keys == ()


def test_a_leaving_key_that_is_wanted_again_is_removed_then_loaded(driver: Driver) -> None:
    driver.desire()
    driver.loaded(KEY)
    assert driver.desire(keys=()) == [fx.UnloadKey(KEY)]
    driver.desire(order("1.1"))
    driver.fetched("1.1")
    assert driver.key(KEY).state is KeyState.LEAVING
    assert driver.phase("1.1") is Phase.FETCHING
    assert driver.do(ev.KeyUnloaded(KEY)) == [fx.LoadKey(KEY, Bytes(5 * GIB))]
    assert driver.loaded(KEY) == [fx.Synthesize(order("1.1"), express=False)]


def test_a_failed_key_fails_its_leases_and_is_tried_again_when_its_offer_changes(
    driver: Driver,
) -> None:
    driver.desire(order("1.1"))
    assert driver.do(ev.KeyFailed(KEY, "query a[3]: off the curve")) == [fx.StopStage("1.1")]
    outcome = driver.lease("1.1").outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.reason) == (FailureKind.INTERNAL, "KEY_FAILED")
    assert "query a[3]" in outcome.detail
    assert driver.key(KEY).state is KeyState.FAILED
    assert driver.key(KEY).reason == "query a[3]: off the curve"
    effects = driver.do(ev.OffersChanged({KEY: Bytes(6 * GIB)}))
    assert effects == [fx.LoadKey(KEY, Bytes(6 * GIB))]


def test_a_key_that_is_not_offered_fails_and_says_so(driver: Driver) -> None:
    driver.desire(keys=(b"?" * 32,))
    key = driver.key(b"?" * 32)
    assert key.state is KeyState.FAILED
    assert "does not offer" in key.reason


def test_a_key_that_takes_more_than_its_offer_is_a_bug_of_the_shell(driver: Driver) -> None:
    driver.desire()
    with pytest.raises(CoreBug, match="its limit was"):
        driver.do(ev.KeyLoaded(KEY, Bytes(6 * GIB)))


def test_a_drain_hands_back_what_has_not_started_and_finishes_the_rest(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.synthesized("1.1")
    driver.ready(order("1.2", job_seq=2))
    driver.synthesized("1.2")
    driver.ready(order("1.3", job_seq=3))
    driver.ready(order("1.4", job_seq=4))
    driver.desire(order("1.5"), drain=True, also=("1.1", "1.2", "1.3", "1.4"))
    assert driver.actual.condition is Condition.DRAINING
    shown = {x.lease_id: x.phase for x in driver.actual.leases}
    assert shown["1.1"] is Phase.PROVING
    assert shown["1.2"] is Phase.WAITING_FOR_DEVICE
    assert shown["1.3"] is Phase.SYNTHESIZING
    for handed_back in ("1.4", "1.5"):
        outcome = driver.lease(handed_back).outcome
        assert isinstance(outcome, Failure)
        assert outcome.kind is FailureKind.HANDED_BACK
    assert driver.phase("1.5") is Phase.FINISHED
    driver.do(ev.DeviceDone("1.1"))
    assert driver.phase("1.2") is Phase.PROVING


def test_a_drain_that_is_withdrawn_leaves_the_prover_ready(driver: Driver) -> None:
    driver.desire(drain=True)
    driver.desire(order("1.1"))
    assert driver.actual.condition is Condition.READY
    assert driver.phase("1.1") is Phase.FETCHING


def test_at_the_end_of_the_grace_the_rest_is_handed_back(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.desire(order("1.1"), drain=True)
    deadline = driver.core.next_deadline_ns()
    assert deadline == driver.core.config.grace_ns
    driver.at(deadline)
    assert driver.tick() == [fx.StopStage("1.1")]
    outcome = driver.lease("1.1").outcome
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.HANDED_BACK


def test_a_stopping_prover_exits_once_it_holds_nothing(driver: Driver) -> None:
    driver.proved("1.1")
    assert driver.do(ev.Stopping()) == []
    assert driver.actual.condition is Condition.DRAINING
    assert driver.desire() == [fx.Exit(0)]


def test_a_stopping_prover_exits_at_the_grace_although_leases_are_held(driver: Driver) -> None:
    driver.proved("1.1")
    driver.do(ev.Stopping())
    driver.at(driver.core.config.grace_ns)
    assert driver.tick() == [fx.Exit(0)]
    assert driver.core.next_deadline_ns() is None


def test_a_fault_fails_the_lease_on_the_device_and_hands_the_rest_back(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.synthesized("1.1")
    driver.ready(order("1.2", job_seq=2))
    driver.do(ev.Faulted("illegal address"))
    assert driver.actual.condition is Condition.FAULTED
    kinds = {x.lease_id: x.outcome.kind for x in driver.actual.leases if x.outcome}  # type: ignore[union-attr]
    assert kinds == {"1.1": FailureKind.COMPUTE, "1.2": FailureKind.HANDED_BACK}
    driver.at(driver.core.config.fault_grace_ns)
    assert fx.Exit(70) in driver.tick()


def test_a_faulted_prover_takes_nothing_new(driver: Driver) -> None:
    driver.ready(order("1.1"))
    driver.do(ev.Faulted("illegal address"))
    assert driver.desire(order("1.2", job_seq=2), also=("1.1",)) == []
    outcome = driver.lease("1.2").outcome
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.HANDED_BACK


def test_a_failed_stage_is_the_outcome_and_frees_the_lease(driver: Driver) -> None:
    driver.ready(order("1.1"))
    failure = Failure(FailureKind.COMPUTE, "BACKEND_FAILED", "a panic")
    assert driver.do(ev.StageFailed("1.1", failure)) == [fx.FreeLease("1.1")]
    assert driver.phase("1.1") is Phase.STOPPING
    assert driver.lease("1.1").outcome == failure
    driver.do(ev.LeaseFreed("1.1"))
    assert driver.phase("1.1") is Phase.FINISHED


def test_phases_and_outcomes_are_urgent_and_progress_is_not() -> None:
    core = PipelineCore(CoreConfig(total=Bytes(100 * GIB)))
    core.handle(ev.OffersChanged({KEY: Bytes(5 * GIB), OTHER_KEY: Bytes(7 * GIB)}), 0)
    core.handle(ev.LinkUp(), 0)
    desired = Desired(epoch=1, revision=1, leases=(order("1.1"),), keys=(KEY,))
    assert core.handle(ev.DesiredReceived(desired), 0)[-1] == fx.SendActual(urgent=True)
    assert core.handle(ev.Progressed("1.1", 100), 0) == [fx.SendActual(urgent=False)]
    assert core.handle(ev.Progressed("1.1", 100), 0) == []


def test_the_inline_input_is_kept_no_longer_than_its_fetch(driver: Driver) -> None:
    inline = order("1.1", inline=b"secret")
    assert fx.FetchInput(inline) in driver.desire(inline)
    driver.loaded(KEY)
    assert driver.fetched("1.1") == [fx.Synthesize(order("1.1"), express=False)]


def test_an_event_that_answers_nothing_is_a_bug_of_the_shell(driver: Driver) -> None:
    driver.ready(order("1.1"))
    with pytest.raises(CoreBug, match="does not answer"):
        driver.do(ev.Proved("1.1", b"", NOTHING))
