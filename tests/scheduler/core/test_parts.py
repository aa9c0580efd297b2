"""The small parts alone: timers, peer clock, ledger, configuration, and that check() bites."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.scheduler.core import events as ev
from partita.scheduler.core.budget import Ledger
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import NOTHING, Bytes, Outcome, PartitionState
from partita.scheduler.core.state import Grant, State
from partita.scheduler.core.tables import LeaseState
from partita.scheduler.core.timers import PeerClock, Timers
from tests.scheduler.core.world import Peer, World, manifest


def test_timers_fall_due_in_order_and_arming_again_replaces() -> None:
    timers = Timers()
    timers.arm(("a", "", 0), 10)
    timers.arm(("b", "", 0), 5)
    timers.arm(("a", "", 0), 3)
    timers.arm(("c", "", 0), 4)
    timers.disarm(("c", "", 0))
    assert timers.next_ns() == 3
    assert timers.pop_due(2) is None
    assert [timers.pop_due(9), timers.pop_due(9), timers.pop_due(99)] == [
        ("a", "", 0),
        ("b", "", 0),
        None,
    ]


def test_timers_that_are_armed_again_and_again_take_no_more_room() -> None:
    timers = Timers()
    for deadline in range(1_000):
        timers.arm(("a", "", 0), deadline)
        timers.arm(("b", "", 0), 5)
        timers.disarm(("b", "", 0))
    assert len(timers._heap) < 100


def test_the_peer_clock_stands_still_beyond_a_beat() -> None:
    clock = PeerClock(beat_ns=5)
    assert clock.turn(100) == 100
    assert clock.turn(105) == 105
    assert clock.turn(200) == 110
    assert clock.turn(150) == 110
    assert clock.turn(203) == 113


def test_the_ledger_counts_each_holder_once() -> None:
    ledger = Ledger(Bytes(10, 10))
    ledger.charge("l", Bytes(4, 1))
    ledger.charge(b"k", Bytes(3, 3))
    ledger.charge("l", Bytes(2, 0))
    assert ledger.charged == Bytes(5, 3)
    assert ledger.room() == Bytes(5, 7)
    ledger.release("l")
    ledger.release("l")
    assert ledger.charged == Bytes(3, 3)
    ledger.charged = NOTHING
    with pytest.raises(CoreBug, match="I2"):
        ledger.check()


@pytest.mark.parametrize(
    "change", [{"beat_ns": 0}, {"grace_ns": -1}, {"backoff_ns": ()}, {"max_crashes": 0}]
)
def test_a_configuration_that_makes_no_sense_names_the_field(change: dict[str, int]) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=name):
        CoreConfig(**change)  # type: ignore[arg-type]


def test_nothing_comes_before_restored_and_it_comes_once() -> None:
    with pytest.raises(CoreBug, match="before Restored"):
        SchedulerCore().handle(ev.ListenerOpened(), 0)
    world = World()
    with pytest.raises(CoreBug, match="once"):
        world.core.handle(ev.Restored(2), world.now)


def test_the_core_asks_for_a_turn_every_beat_while_it_judges_peers() -> None:
    world = World()
    assert world.core.next_deadline_ns() is None
    Peer(world, "gpu-0").connect()
    assert world.core.next_deadline_ns() == world.now + 5 * SECOND_NS


def _state(world: World) -> State:
    return world.core._state


def _lease_charge(state: State) -> None:
    state.sessions[1].ledger.charge("nobody", Bytes(1))


def _under_report(state: State) -> None:
    state.sessions[1].ledger.charge(manifest("c"), NOTHING)


def _two_rights(state: State) -> None:
    state.jobs["j"].partitions[0].lease = None


def _settled_right(state: State) -> None:
    next(iter(state.leases.values())).state = LeaseState.SETTLING


def _key_unwanted(state: State) -> None:
    state.sessions[1].keys[manifest("c")].wanted = False


def _lost_in_queue(state: State) -> None:
    state.queue.remove(state.jobs["j"].partitions[3])


def _forged(state: State) -> None:
    part = state.jobs["j"].partitions[0]
    part.state, part.lease, part.proof = PartitionState.PROVED, None, b"forged"
    state.jobs["j"].n_proved = 1


def _outcome(state: State) -> None:
    state.jobs["j"].outcome = Outcome.COMPLETED


def _granted_beyond_the_total(state: State) -> None:
    part = state.jobs["j"].partitions[0]
    lane = state.jobs["j"].partitions[3].lane
    assert lane is not None
    state.grants.append(Grant(part.key, lane, 1))
    state.sessions[1].ledger.total = Bytes(1)


def _overtaken(state: State) -> None:
    waiting = state.jobs["j"].partitions[3]
    assert waiting.lane is not None
    priority, seq, _ = waiting.key
    state.grants.append(Grant((priority, seq + 1, 0), waiting.lane, 1))


def _miscounted(state: State) -> None:
    state.open_jobs += 1


def _no_deadline(state: State) -> None:
    state.peer_timers.disarm(("silent", "", 1))


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (_granted_beyond_the_total, "I2"),
        (_lease_charge, "I3"),
        (_under_report, "I4"),
        (_two_rights, "I5"),
        (_settled_right, "I5"),
        (_key_unwanted, "I6"),
        (_overtaken, "I7"),
        (_lost_in_queue, "I8"),
        (_forged, "I9"),
        (_outcome, "I1"),
        (_miscounted, "I11"),
        (_no_deadline, "I13"),
    ],
)
def test_check_finds_each_kind_of_damage(spoil: Callable[[State], None], invariant: str) -> None:
    world = World()
    peer = Peer(world, "gpu-0", slots=3, express=0).connect()
    world.submit("j", 4)
    peer.sync()
    world.core.check()
    spoil(_state(world))
    with pytest.raises(CoreBug, match=invariant):
        world.core.check()
