"""Back-off: how long a partition waits before a prover that it failed on gets it again.

A failure that ends a lease starts one. Until it is over the partition waits in its lane only while
another prover accepts it, otherwise in no lane; so an unsteady second prover neither shortens the
wait nor keeps the partition from a steady one. It goes on while the partition is LEASED, and ends
when it is PROVED or dropped; a restart of the scheduler ends all. `State.backing_off` lists all
that have one, `Partition.backing_off` says which of them are in no lane.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance, leases
from partita.scheduler.core.config import SECOND_NS
from partita.scheduler.core.queue import lane_key
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import LaneKey, Partition
from partita.scheduler.core.timers import TimerName

_LOOK_NS = SECOND_NS
"""How often those in no lane are looked at for another prover that has come."""
LOOK: TimerName = ("look", "", 0)
"""The timer of that."""


def timer(part: Partition) -> TimerName:
    """The timer of its back-off."""
    return "backoff", part.job.job_id, part.index


def begin(state: State, part: Partition) -> None:
    """A failure was counted: start the back-off, or start it anew."""
    waits = state.config.backoff_ns
    wait_ns = waits[min(len(part.failures), len(waits)) - 1]
    state.backing_off[part.job.job_id, part.index] = part
    state.timers.arm(timer(part), state.now_ns + wait_ns)


def end(state: State, part: Partition) -> None:
    """Forget the back-off, if there is one; to queue the partition is the caller's."""
    if state.backing_off.pop((part.job.job_id, part.index), None) is not None:
        part.backing_off = False
        state.timers.disarm(timer(part))


def queue(state: State, part: Partition) -> None:
    """Let a partition that is in no lane wait in its lane, or in none if it must back off."""
    if must_wait(state, part):
        hold(state, part)
    else:
        state.queue.add(part)


def must_wait(state: State, part: Partition) -> bool:
    """Tell whether it backs off and nobody accepts it but a prover that it failed on."""
    if (part.job.job_id, part.index) not in state.backing_off:
        return False
    failed_on = part.excluded | {part.failures[-1].prover_id}
    return not acceptance.has_other_candidate(state, part, failed_on)


def hold(state: State, part: Partition) -> None:
    """Take a partition that must wait out of its lane."""
    state.queue.remove(part)
    leases.unbind(state, part)
    part.backing_off = True
    if LOOK not in state.timers.armed:
        state.timers.arm(LOOK, state.now_ns + _LOOK_NS)


def over(state: State, part: Partition) -> None:
    """The time is over: any prover may have it."""
    held = part.backing_off
    end(state, part)
    if held:
        state.queue.add(part)
        state.want_dispatch = True


def look(state: State) -> None:
    """Put those that another prover accepts by now into their lanes; look again while any is left.

    One question for all that are alike: hundreds may fail on one prover.
    """
    waits: dict[tuple[LaneKey, str], bool] = {}
    left = False
    for part in state.backing_off.values():
        if not part.backing_off:
            continue
        alike = lane_key(part, state.config.alone_after_crashes), part.failures[-1].prover_id
        if alike not in waits:
            waits[alike] = must_wait(state, part)
        if waits[alike]:
            left = True
        else:
            part.backing_off = False
            state.queue.add(part)
            state.want_dispatch = True
    if left:
        state.timers.arm(LOOK, state.now_ns + _LOOK_NS)
