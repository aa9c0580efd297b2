"""Standing debits, quarantine, probation, and what an operator may say of it."""

from __future__ import annotations

import pytest

from partita.scheduler.core import events as ev
from partita.scheduler.core.config import CoreConfig
from partita.scheduler.core.model import FailureKind, Mode, Priority, Trust, Verdict
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World, spec


def caught_lying(world: World, liar: Peer, honest: Peer, job_id: str, **more: object) -> None:
    """Let a proof of one prover fail to verify, and the other prove that partition."""
    busy = world.prover(honest.hello.prover_id)
    world.do(ev.ModeSet(busy.prover_id, Mode.CORDONED))
    world.submit(job_id, **more)  # type: ignore[arg-type]
    liar.sync()
    liar.prove(liar.lease_of(job_id), good=False)
    world.do(ev.ModeSet(busy.prover_id, Mode.ACTIVE))
    liar.sync()
    world.run(2)
    honest.sync()
    honest.prove(honest.lease_of(job_id))
    honest.sync()
    assert world.core.status(job_id).state is PublicState.COMPLETED


def pair(config: CoreConfig | None = None) -> tuple[World, Peer, Peer]:
    world = World(config=config)
    return world, Peer(world, "liar").connect(), Peer(world, "honest").connect()


def quarantined() -> tuple[World, Peer, Peer]:
    world, liar, honest = pair()
    for number in range(3):
        caught_lying(world, liar, honest, f"j{number}")
    assert world.prover("liar").trust is Trust.QUARANTINED
    return world, liar, honest


def on_probation() -> tuple[World, Peer]:
    """Leave only a prover on probation connected."""
    world, liar, honest = quarantined()
    honest.hang_up(clean=True)
    let_pass(world, 600, liar)
    assert world.prover("liar").trust is Trust.PROBATION
    return world, liar


def let_pass(world: World, seconds: int, *peers: Peer) -> None:
    for _ in range(seconds // 5):
        world.run(5)
        for peer in peers:
            peer.sync()


def test_the_third_standing_debit_quarantines_the_prover_and_the_fleet_says_why() -> None:
    world, liar, honest = pair()
    for number in range(2):
        caught_lying(world, liar, honest, f"j{number}")
        assert world.prover("liar").trust is Trust.TRUSTED
    caught_lying(world, liar, honest, "j2")
    view = world.prover("liar")
    assert (view.trust, view.debits, view.accepting) == (Trust.QUARANTINED, 3, False)
    assert view.reason == "quarantined: 3 of its proofs did not verify where another did"
    assert world.prover("honest").trust is Trust.TRUSTED
    honest.hang_up(clean=True)
    world.submit("k")
    assert liar.wanted() == []
    assert world.core.partitions("k")[0].waiting_for == "unschedulable: liar: quarantined"


def test_the_number_of_debits_is_configured() -> None:
    world, liar, honest = pair(CoreConfig(quarantine_debits=1))
    caught_lying(world, liar, honest, "j")
    assert world.prover("liar").trust is Trust.QUARANTINED


def test_proofs_that_nobody_can_make_verify_quarantine_nobody() -> None:
    world, one, two = pair()
    for number in range(4):
        world.submit(f"j{number}")
        for peer in (one, two, one, two):
            peer.sync()
            for lease_id in list(peer.leases):
                peer.prove(lease_id, good=False)
            peer.sync()
        assert world.core.status(f"j{number}").state is PublicState.FAILED
    assert [p.debits for p in world.core.fleet().provers] == [0, 0]
    assert {p.trust for p in world.core.fleet().provers} == {Trust.TRUSTED}


def test_a_late_proof_that_does_not_verify_is_a_debit_once_the_partition_is_proved() -> None:
    world, liar, honest = pair(CoreConfig(quarantine_debits=1))
    world.auto_verify = False
    world.do(ev.ModeSet("honest", Mode.CORDONED))
    world.submit("j")
    liar.sync()
    liar.prove(liar.lease_of("j"), good=False)
    liar.hang_up()
    liar.leases = {}
    world.do(ev.ModeSet("honest", Mode.ACTIVE))
    assert world.prover("liar").debits == 0
    (check,) = world.verifications()
    world.verdict(check, Verdict.INVALID)
    honest.sync()
    honest.prove(honest.lease_of("j"))
    world.verdict(world.verifications()[-1], Verdict.VALID)
    assert world.prover("liar").trust is Trust.QUARANTINED


def test_what_a_quarantined_prover_holds_goes_on_and_fills_its_slot() -> None:
    world, liar, honest = pair()
    for number in range(2):
        caught_lying(world, liar, honest, f"j{number}")
    world.do(ev.ModeSet("honest", Mode.CORDONED))
    world.submit("held")
    liar.sync()
    world.do(ev.ModeSet("honest", Mode.ACTIVE))
    caught_lying(world, liar, honest, "j2")
    assert world.prover("liar").trust is Trust.QUARANTINED
    assert liar.wanted() == [("held", 0)]
    liar.prove(liar.lease_of("held"))
    assert world.core.status("held").state is PublicState.COMPLETED
    assert world.prover("liar").trust is Trust.QUARANTINED


def test_a_quarantine_by_score_ends_on_probation_after_ten_minutes() -> None:
    world, liar, _ = quarantined()
    let_pass(world, 595, liar)
    assert world.prover("liar").trust is Trust.QUARANTINED
    let_pass(world, 5, liar)
    view = world.prover("liar")
    assert (view.trust, view.accepting) == (Trust.PROBATION, True)
    assert view.reason.startswith("on probation after: quarantined: 3 of its proofs")
    assert world.store.provers["liar"].trust is Trust.PROBATION


def test_on_probation_a_prover_has_one_lease_until_its_verdict() -> None:
    world, liar = on_probation()
    world.auto_verify = False
    world.submit("j", 3)
    assert liar.wanted() == [("j", 0)]
    liar.sync()
    liar.prove(liar.lease_of("j", 0))
    assert liar.wanted() == [("j", 0)]
    world.verdict(world.verifications()[-1], Verdict.VALID)
    assert liar.wanted() == [("j", 1), ("j", 2)]


def test_a_lease_that_ends_without_a_verdict_makes_room_for_the_next_on_probation() -> None:
    world, liar = on_probation()
    world.auto_verify = False
    world.submit("j")
    world.submit("k")
    liar.sync()
    liar.prove(liar.lease_of("j"))
    world.do(ev.CancelRequested("j", "me"))
    assert liar.wanted() == [("k", 0)]


def test_a_valid_proof_on_probation_restores_trust_and_clears_the_score() -> None:
    world, liar = on_probation()
    world.submit("j")
    liar.sync()
    liar.prove(liar.lease_of("j"))
    view = world.prover("liar")
    assert (view.trust, view.debits, view.reason) == (Trust.TRUSTED, 0, "")
    row = world.store.provers["liar"]
    assert (row.trust, row.debits, row.trust_reason) == (Trust.TRUSTED, 0, "")


def test_a_proof_that_does_not_verify_on_probation_quarantines_at_once() -> None:
    world, liar = on_probation()
    world.submit("j")
    liar.sync()
    liar.prove(liar.lease_of("j"), good=False)
    view = world.prover("liar")
    assert view.trust is Trust.QUARANTINED
    assert view.reason == "quarantined: a proof did not verify on probation"
    let_pass(world, 600, liar)
    assert world.prover("liar").trust is Trust.PROBATION


def test_a_failure_on_probation_that_is_no_bad_proof_changes_no_trust() -> None:
    world, liar = on_probation()
    world.submit("j")
    liar.sync()
    liar.fail(liar.lease_of("j"), FailureKind.COMPUTE)
    assert world.prover("liar").trust is Trust.PROBATION


def test_a_prover_on_probation_never_gets_critical_work_and_it_holds_nothing_back() -> None:
    world, liar = on_probation()
    world.submit("urgent", priority=Priority.CRITICAL)
    world.submit("j")
    assert liar.wanted() == [("j", 0)]
    why = world.core.partitions("urgent")[0].waiting_for
    assert why == "unschedulable: liar: on probation, takes no critical work"
    liar.sync()
    liar.prove(liar.lease_of("j"))
    assert ("urgent", 0) in liar.wanted()


def test_work_that_becomes_critical_while_it_waits_is_not_for_a_prover_on_probation() -> None:
    world, liar = on_probation()
    world.submit("first")
    world.submit("j", request_id="r")
    again = {"request_id": "r", "priority": Priority.CRITICAL}
    world.submit("unused", **again)  # type: ignore[arg-type]
    liar.sync()
    world.auto_verify = False
    liar.prove(liar.lease_of("first"))
    world.do(ev.CancelRequested("first", "me"))
    liar.sync()
    assert liar.wanted() == []


def test_an_operators_quarantine_lasts_until_it_is_released() -> None:
    world, liar, honest = pair()
    honest.hang_up(clean=True)
    world.do(ev.TrustSet("liar", Trust.QUARANTINED, "smells of smoke"))
    let_pass(world, 3_600, liar)
    view = world.prover("liar")
    assert (view.trust, view.reason) == (Trust.QUARANTINED, "smells of smoke")
    world.submit("j")
    assert liar.wanted() == []
    world.do(ev.TrustSet("liar", Trust.TRUSTED, "new fan"))
    assert world.prover("liar").reason == ""
    assert liar.wanted() == [("j", 0)]


def test_an_operators_quarantine_replaces_one_that_would_have_ended() -> None:
    world, liar, _ = quarantined()
    world.do(ev.TrustSet("liar", Trust.QUARANTINED, "stay"))
    let_pass(world, 1_200, liar)
    assert world.prover("liar").trust is Trust.QUARANTINED


def test_a_released_prover_starts_with_a_clean_score() -> None:
    world, liar, honest = quarantined()
    world.do(ev.TrustSet("liar", Trust.TRUSTED))
    caught_lying(world, liar, honest, "again")
    view = world.prover("liar")
    assert (view.trust, view.debits) == (Trust.TRUSTED, 1)


def test_quarantines_survive_a_restart_and_the_one_by_score_ends_when_it_would_have() -> None:
    world, liar, _ = quarantined()
    world.do(ev.TrustSet("honest", Trust.QUARANTINED, "mine"))
    world.run(300)
    world.boot()
    liar.connect()
    let_pass(world, 290, liar)
    assert world.prover("liar").trust is Trust.QUARANTINED
    let_pass(world, 10, liar)
    assert world.prover("liar").trust is Trust.PROBATION
    let_pass(world, 3_600, liar)
    view = world.prover("honest")
    assert (view.trust, view.reason) == (Trust.QUARANTINED, "mine")


def test_the_reasons_for_mode_and_trust_stand_side_by_side() -> None:
    world, _, _ = quarantined()
    world.do(ev.ModeSet("liar", Mode.CORDONED, "moves house"))
    assert world.prover("liar").reason == (
        "moves house; quarantined: 3 of its proofs did not verify where another did"
    )


@pytest.mark.parametrize("restart", [False, True])
def test_after_an_unverifiable_proof_the_next_lease_looks_at_every_row(restart: bool) -> None:
    world, one, two = pair()
    world.do(ev.ModeSet("honest", Mode.CORDONED))
    world.submit("j")
    one.sync()
    assert not world.core.desired(one.session).leases[0].diagnose
    one.prove(one.lease_of("j"), good=False)
    one.hang_up()
    world.do(ev.ModeSet("honest", Mode.ACTIVE))
    if restart:
        world.boot()
        two.connect()
    world.run(2)
    assert world.core.desired(two.session).leases[0].diagnose
    assert spec("j/0").input == world.core.desired(two.session).leases[0].input
