"""What each failure does to its partition, its prover and its job."""

from __future__ import annotations

import hashlib

import pytest

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import MINUTE_NS
from partita.scheduler.core.model import (
    Condition,
    Failure,
    FailureKind,
    HeldKey,
    KeyShown,
    Phase,
    StatementSource,
    Verdict,
)
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import GIB, Peer, World, manifest, offer

COUNTED = [
    FailureKind.COMPUTE,
    FailureKind.INTERNAL,
    FailureKind.RESOURCE,
    FailureKind.TIMED_OUT,
]


def reason(world: World, job_id: str = "j") -> tuple[PublicState, FailureKind, str]:
    view = world.core.status(job_id)
    assert view.failure is not None
    return view.state, view.failure.kind, view.failure.reason


def holder(*peers: Peer) -> Peer:
    """Return the one prover that is wanted to prove j/0."""
    (peer,) = [p for p in peers if ("j", 0) in p.wanted()]
    return peer


def test_invalid_input_ends_the_job_at_once_with_the_provers_words() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    peer.sync()
    peer.finish(
        peer.lease_of("j", 1), Failure(FailureKind.INVALID_INPUT, "ASSERT_FAILED", "line 7")
    )
    assert reason(world) == (PublicState.FAILED, FailureKind.INVALID_INPUT, "ASSERT_FAILED")
    assert world.core.status("j").failure == world.core.partitions("j")[1].failures[0]
    assert peer.wanted() == []


@pytest.mark.parametrize("kind", COUNTED)
def test_a_counted_failure_excludes_the_prover_while_another_exists(kind: FailureKind) -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    two = Peer(world, "gpu-1").connect()
    world.submit("j")
    one.sync()
    one.fail(one.lease_of("j"), kind)
    assert one.wanted() == []
    assert two.wanted() == [("j", 0)]
    failure = world.core.partitions("j")[0].failures[0]
    assert (failure.kind, failure.prover_id, failure.attempt) == (kind, "gpu-0", 1)


def test_only_the_bad_partition_is_proved_again() -> None:
    world = World()
    one = Peer(world, "gpu-0", slots=10).connect()
    world.submit("j", 10)
    one.sync()
    two = Peer(world, "gpu-1").connect()
    for index in range(10):
        one.prove(one.lease_of("j", index), good=index != 4)
    two.sync()
    two.prove(two.lease_of("j", 4))
    assert world.core.status("j").state is PublicState.COMPLETED
    assert len(world.persisted(rec.LeaseRecord)) == 11


def test_five_failures_in_all_poison_the_job_with_every_reason() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    world.submit("other")
    for number in range(5):
        peer.sync()
        peer.fail(peer.lease_of("j"), FailureKind.COMPUTE, f"R{number}")
        peer.report()
        world.run(31)
        peer.report()
    assert reason(world) == (PublicState.FAILED, FailureKind.COMPUTE, "POISONED")
    failure = world.core.status("j").failure
    assert failure is not None
    assert all(f"R{number}" in failure.detail for number in range(5))
    peer.sync()
    peer.prove(peer.lease_of("other"))
    assert world.core.status("other").state is PublicState.COMPLETED


def test_a_lone_prover_that_runs_out_of_memory_is_tried_with_all_it_has_and_ends_the_job() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", 2, 10), total_gib=13).connect()
    world.submit("j")
    reserved = []
    for _ in range(5):
        peer.sync()
        reserved.append(world.core.desired(peer.session).leases[0].reserved.host / GIB)
        peer.fail(peer.lease_of("j"), FailureKind.RESOURCE, "OUT_OF_MEMORY")
        peer.report()
        world.run(31)
        peer.report()
    assert reserved == [10, 11, 11, 11, 11]
    assert reason(world) == (PublicState.FAILED, FailureKind.RESOURCE, "POISONED")


def test_failures_on_three_distinct_provers_poison_the_job() -> None:
    world = World()
    peers = [Peer(world, f"gpu-{i}").connect() for i in range(4)]
    world.submit("j")
    for _ in range(3):
        peer = holder(*peers)
        peer.sync()
        peer.fail(peer.lease_of("j"), FailureKind.COMPUTE)
    assert reason(world)[2] == "POISONED"


def test_unverifiable_on_two_provers_blames_the_input_and_voids_the_debits() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    two = Peer(world, "gpu-1").connect()
    world.submit("j")
    one.sync()
    one.prove(one.lease_of("j"), good=False)
    assert world.core.desired(two.session).leases[0].diagnose
    two.sync()
    two.prove(two.lease_of("j"), good=False)
    assert reason(world) == (PublicState.FAILED, FailureKind.UNVERIFIED, "POISONED")
    failure = world.core.status("j").failure
    assert failure is not None
    assert "witness or key does not fit; add --r1cs to see where" in failure.detail
    assert [p.debits for p in world.core.fleet().provers] == [0, 0]


def test_with_one_prover_unverifiable_proofs_end_the_job_after_five() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    for _ in range(5):
        peer.sync()
        peer.prove(peer.lease_of("j"), good=False)
        peer.report()
        world.run(31)
        peer.report()
    assert reason(world)[2] == "POISONED"
    failure = world.core.status("j").failure
    assert failure is not None
    assert "add --r1cs" in failure.detail


def test_a_debit_stands_once_anybody_proves_the_partition() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    two = Peer(world, "gpu-1").connect()
    world.submit("j")
    one.sync()
    one.prove(one.lease_of("j"), good=False)
    assert world.core.fleet().provers[0].debits == 0
    two.sync()
    two.prove(two.lease_of("j"))
    assert world.core.status("j").state is PublicState.COMPLETED
    assert [p.debits for p in world.core.fleet().provers] == [1, 0]
    assert world.store.provers["gpu-0"].debits == 1


@pytest.mark.parametrize("condition", [Condition.DRAINING, Condition.FAULTED])
def test_a_hand_back_from_a_draining_or_faulted_prover_counts_nothing(
    condition: Condition,
) -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    one.sync()
    two = Peer(world, "gpu-1").connect()
    one.condition = condition
    one.fail(one.lease_of("j"), FailureKind.HANDED_BACK)
    assert two.wanted() == [("j", 0)]
    part = world.core.partitions("j")[0]
    assert (part.failures, part.crashes) == ((), 0)


def test_a_hand_back_from_a_ready_prover_is_an_internal_failure() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.fail(peer.lease_of("j"), FailureKind.HANDED_BACK)
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.INTERNAL


def test_a_lost_input_ends_the_job_only_if_the_scheduler_lacks_it_too() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    world.submit("k")
    peer.sync()
    peer.fail(peer.lease_of("j"), FailureKind.INPUT_LOST)
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.INTERNAL
    lease_id = peer.lease_of("k")
    peer.leases[lease_id] = type(peer.leases[lease_id])(
        lease_id,
        "k",
        0,
        1,
        Phase.FINISHED,
        peer.leases[lease_id].held,
        outcome=Failure(FailureKind.INPUT_LOST, "INPUT_LOST"),
    )
    peer.report(missing=frozenset({hashlib.sha256(b"k/0").digest()}))
    assert reason(world, "k") == (PublicState.FAILED, FailureKind.INPUT_LOST, "INPUT_LOST")


def test_a_lease_that_a_living_prover_dropped_is_an_internal_failure_that_excludes_nobody() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.applied = world.core.desired(peer.session).revision
    peer.report()
    failure = world.core.partitions("j")[0].failures[0]
    assert (failure.kind, failure.reason) == (FailureKind.INTERNAL, "LEASE_LOST")
    peer.report()
    world.run(1)
    assert peer.wanted() == [("j", 0)]


def test_a_grant_that_the_prover_has_not_taken_in_yet_is_not_lost() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.report()
    assert peer.wanted() == [("j", 0)]
    assert world.core.partitions("j")[0].failures == ()


def test_five_crashes_end_the_job_and_one_never_does() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    for number in range(5):
        assert world.core.status("j").state in (PublicState.QUEUED, PublicState.RUNNING)
        assert world.core.partitions("j")[0].crashes == number
        peer.sync()
        peer.phase(peer.lease_of("j"), Phase.SYNTHESIZING)
        peer.die()
        peer.connect()
    assert reason(world) == (PublicState.FAILED, FailureKind.LOST, "CRASH_LOOP")
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.LOST


def test_a_loss_outside_native_code_is_no_crash() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    for phase in (Phase.FETCHING, Phase.WAITING_FOR_DEVICE, Phase.WAITING_FOR_SYNTHESIS) * 3:
        peer.sync()
        peer.phase(peer.lease_of("j"), phase)
        peer.die()
        peer.connect()
    part = world.core.partitions("j")[0]
    assert (part.crashes, part.failures) == (0, ())


def test_a_crash_is_taken_back_if_the_same_instance_returns() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.phase(peer.lease_of("j"), Phase.PROVING)
    peer.hang_up()
    world.run(20)
    assert world.core.partitions("j")[0].crashes == 1
    peer.connect()
    assert world.core.partitions("j")[0].crashes == 0
    assert world.store.partitions[("j", 0)].crashes == ()


def test_the_lease_clock_counts_native_phases_only_and_survives_a_reconnect() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    lease_id = peer.lease_of("j")

    def stay(phase: Phase, seconds: float) -> None:
        peer.phase(lease_id, phase)
        for _ in range(int(seconds // 5)):
            world.run(5)
            peer.report()

    stay(Phase.SYNTHESIZING, 200)
    stay(Phase.WAITING_FOR_DEVICE, 1_000)
    stay(Phase.PROVING, 60)
    peer.hang_up()
    world.run(10)
    peer.connect()
    assert peer.wanted() == [("j", 0)]
    stay(Phase.PROVING, 35)
    assert peer.wanted() == [("j", 0)]
    stay(Phase.PROVING, 5)
    assert peer.wanted() == []
    failure = world.core.partitions("j")[0].failures[0]
    assert (failure.kind, failure.reason) == (FailureKind.TIMED_OUT, "LEASE_TIMEOUT")


def test_fetching_has_a_limit_of_its_own() -> None:
    world = World()
    peer = Peer(world, "gpu-0", offer("c", load_s=60)).connect()
    world.submit("j")
    peer.sync()
    for _ in range(119):
        world.run(5)
        peer.report()
    assert peer.wanted() == [("j", 0)]
    world.run(5)
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.TIMED_OUT


def test_the_timeout_doubles_with_each_attempt() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    timeouts = []
    for _ in range(3):
        timeouts.append(world.core.desired(peer.session).leases[0].timeout_ns)
        peer.sync()
        peer.fail(peer.lease_of("j"), FailureKind.COMPUTE)
        peer.sync()
        world.run(6)
    assert timeouts == [5 * MINUTE_NS, 10 * MINUTE_NS, 20 * MINUTE_NS]


def test_a_broken_verifier_is_asked_again_after_1_5_30_seconds_and_never_accepts() -> None:
    world = World()
    world.auto_verify = False
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    for wait_s in (1, 5, 30, 30):
        (check,) = world.verifications()
        world.effects.clear()
        world.verdict(check, Verdict.UNCHECKED)
        world.run(wait_s - 0.001)
        assert world.verifications() == []
        peer.report()
        world.run(0.001)
        assert world.core.status("j").state is PublicState.RUNNING
    (check,) = world.verifications()
    world.verdict(check, Verdict.VALID)
    assert world.core.status("j").state is PublicState.COMPLETED


def test_an_outcome_is_taken_once_however_often_it_is_reported() -> None:
    world = World()
    world.auto_verify = False
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.prove(peer.lease_of("j"))
    for _ in range(5):
        peer.report()
    (check,) = world.verifications()
    world.verdict(check, Verdict.INVALID)
    for _ in range(5):
        peer.report()
    world.verdict(check, Verdict.VALID)
    assert len(world.verifications()) == 1
    assert len(world.core.partitions("j")[0].failures) == 1


def test_a_statement_that_nobody_submitted_is_the_provers_and_the_result_says_so() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", stated=False)
    peer.sync()
    peer.prove(peer.lease_of("j"), statement=b"statement of mine")
    part = world.core.partitions("j")[0]
    assert part.statement == b"statement of mine"
    assert part.statement_source is StatementSource.PROVER


def test_a_submitted_statement_is_never_replaced_by_the_provers() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    peer.prove(peer.lease_of("j"), statement=b"statement of mine")
    assert world.verifications()[0].statement == b"statement of j/0"
    assert world.core.partitions("j")[0].failures[0].kind is FailureKind.UNVERIFIED


def test_a_proof_without_the_statement_that_was_asked_for_is_an_internal_failure() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j", stated=False)
    peer.sync()
    peer.prove(peer.lease_of("j"))
    assert world.core.partitions("j")[0].failures[0].reason == "STATEMENT_MISSING"
    assert world.verifications() == []


def test_a_key_that_fails_sends_its_leases_elsewhere_without_counting() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    one.sync()
    one.keys[manifest("c")] = HeldKey(
        manifest("c"), KeyShown.FAILED, one.keys[manifest("c")].held, 0, "linearity failed"
    )
    one.fail(one.lease_of("j", 0), FailureKind.INTERNAL)
    assert one.wanted() == []
    why = world.core.partitions("j")[0].waiting_for
    assert why == "unschedulable: gpu-0: its key failed: linearity failed"
    two = Peer(world, "gpu-1").connect()
    assert two.wanted() == [("j", 0), ("j", 1)]
    assert world.core.partitions("j")[0].failures == ()
    one.sync()
    one.die()
    one.connect()
    assert world.core.fleet().provers[0].accepting


def test_a_faulted_prover_counts_compute_for_the_device_and_hands_the_rest_back() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j", 2)
    one.sync()
    one.condition = Condition.FAULTED
    first, second = one.lease_of("j", 0), one.lease_of("j", 1)
    one.fail(first, FailureKind.COMPUTE)
    one.fail(second, FailureKind.HANDED_BACK)
    counts = [len(p.failures) for p in world.core.partitions("j")]
    assert counts == [1, 0]


def test_a_late_proof_that_does_not_verify_counts_against_its_prover() -> None:
    world = World()
    one = Peer(world, "gpu-0").connect()
    world.submit("j")
    one.sync()
    two = Peer(world, "gpu-1").connect()
    two.sync()
    one.phase(one.lease_of("j"), Phase.PROVING)
    for _ in range(60):
        world.run(5)
        one.report()
        two.report()
    assert two.wanted() == [("j", 0)]
    one.prove(one.lease_of("j"), good=False)
    kinds = [f.kind for f in world.core.partitions("j")[0].failures]
    assert kinds == [FailureKind.TIMED_OUT, FailureKind.UNVERIFIED]
    assert two.wanted() == [("j", 0)]
    two.sync()
    two.prove(two.lease_of("j"))
    assert world.core.status("j").state is PublicState.COMPLETED


def test_a_late_failure_of_a_revoked_lease_changes_nothing() -> None:
    world = World()
    peer = Peer(world, "gpu-0").connect()
    world.submit("j")
    peer.sync()
    world.do(ev.CancelRequested("j", "me"))
    before = world.core.status("j")
    peer.fail(peer.lease_of("j"), FailureKind.INVALID_INPUT)
    assert world.core.status("j") == before
    assert [e for e in world.effects if isinstance(e, fx.VerifyProof)] == []
