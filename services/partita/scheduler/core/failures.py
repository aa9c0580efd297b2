"""What a failure does: the partition again elsewhere, or the end of its job.

    INVALID_INPUT                               ends the job
    COMPUTE, UNVERIFIED, INTERNAL, TIMED_OUT    a failure; excludes the prover for the partition
    RESOURCE                                    the same; the prover's peak for the circuit rises
    HANDED_BACK      nothing from a DRAINING or FAULTED prover, else INTERNAL
    LOST             never excludes; in a native phase a crash
    INPUT_LOST       ends the job if the blob is gone here, else INTERNAL

Poison is judged only when a failure arrives: 3 distinct provers, UNVERIFIED on 2, or 5 in all.
Crashes end the job at 5; from the second on the partition runs alone. No single loss of a
prover ends a job, and a clean hand-back changes no counter (I12).
"""

from __future__ import annotations

from dataclasses import replace

from partita.scheduler.core import acceptance, jobs, leases
from partita.scheduler.core.model import (
    NATIVE_PHASES,
    Bytes,
    Condition,
    CrashMark,
    Failure,
    FailureKind,
    Outcome,
    PartitionState,
)
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Lease, LeaseState, Partition

_EXCLUDING = frozenset(
    {
        FailureKind.COMPUTE,
        FailureKind.UNVERIFIED,
        FailureKind.INTERNAL,
        FailureKind.TIMED_OUT,
        FailureKind.RESOURCE,
    }
)


def excluded_by(failures: tuple[Failure, ...]) -> frozenset[str]:
    """Return the provers that a partition's failures exclude."""
    return frozenset(f.prover_id for f in failures if f.reason != "LEASE_LOST" and f.prover_id)


def lease_failed(
    state: State, lease: Lease, failure: Failure, condition: Condition, missing: frozenset[bytes]
) -> None:
    """Take the Failure of a lease that has the right to its partition."""
    part = lease.part
    if part is None or not lease.has_right:
        return
    part.taken += (lease.lease_id,)
    failure = replace(
        failure, prover_id=lease.prover_id, attempt=lease.attempt, time_ns=state.now_ns
    )
    kind = failure.kind
    if kind is FailureKind.HANDED_BACK and condition in (Condition.DRAINING, Condition.FAULTED):
        state.save_partition(part)
        leases.end_right(state, lease)
        jobs.requeue(state, part)
        return
    if kind is FailureKind.INVALID_INPUT:
        _end(state, part, failure)
        return
    if kind is FailureKind.INPUT_LOST and part.spec.input.sha256 in missing:
        _end(state, part, failure)
        return
    if kind is FailureKind.RESOURCE:
        _raise_by_a_tenth(state, lease)
    elif kind not in _EXCLUDING:
        failure = replace(
            failure,
            kind=FailureKind.INTERNAL,
            reason=failure.reason or kind.name,
            detail=f"{kind.name}: {failure.detail}",
        )
    leases.end_right(state, lease)
    count(state, part, failure)


def _raise_by_a_tenth(state: State, lease: Lease) -> None:
    """The lease ran out of memory: reserve a tenth more than it had there, from now on.

    At most what the prover has for a lease that runs alone: it is tried with that too, and if that
    does not suffice the failures end the job.
    """
    session = state.session_of(lease)
    measured = lease.reserved
    alone = measured
    if session is not None and lease.part is not None:
        measured = measured.most(session.ledger.of(lease.lease_id))
        offer = session.offers.get(lease.part.job.manifest_sha256)
        if offer is not None:
            alone = alone.most(acceptance.usable_total(session, offer) - offer.key)
    raised = Bytes(
        measured.host + -(-measured.host // 10), measured.device + -(-measured.device // 10)
    )
    leases.raise_peak(state, lease, raised.least(alone))


def count(state: State, part: Partition, failure: Failure) -> None:
    """Count a failure of an open partition, judge poison, and let it wait again.

    The right of the lease that failed must have ended; another lease may have it (a late
    proof that does not verify).
    """
    part.failures += (failure,)
    part.excluded = excluded_by(part.failures)
    if failure.prover_id:
        prover = state.prover(failure.prover_id)
        prover.failed += 1
        prover.last_failure = failure
    state.save_partition(part)
    reason = poison(state, part)
    if reason:
        _end(state, part, replace(failure, reason="POISONED", detail=reason))
    elif part.lease is not None:
        state.changed(part.job)
    elif part.state is PartitionState.LEASED:
        jobs.requeue(state, part, failed=True)
    else:
        jobs.relane(state, part)
        state.changed(part.job)


def poison(state: State, part: Partition) -> str:
    """Say why nobody should try the partition again; empty if somebody should."""
    config = state.config
    failures = part.failures
    unverified = {f.prover_id for f in failures if f.kind is FailureKind.UNVERIFIED}
    provers = {f.prover_id for f in failures}
    if len(unverified) >= config.poison_unverified_provers:
        what = f"{len(unverified)} provers returned proofs that do not verify"
    elif len(failures) >= config.poison_failures and all(
        f.kind is FailureKind.UNVERIFIED for f in failures
    ):
        what = f"{len(failures)} proofs in a row do not verify"
    elif len(provers) >= config.poison_provers:
        what = f"it failed on {len(provers)} provers"
    elif len(failures) >= config.poison_failures:
        what = f"it failed {len(failures)} times"
    else:
        return ""
    hint = ""
    if unverified and all(f.kind is FailureKind.UNVERIFIED for f in failures):
        hint = ": witness or key does not fit; add --r1cs to see where"
    tries = "; ".join(
        f"{f.prover_id}: {f.kind.name} {f.reason} {f.detail}".strip() for f in failures
    )
    return f"partition {part.index}: {what}{hint} ({tries})"


def _end(state: State, part: Partition, failure: Failure) -> None:
    if failure not in part.failures and failure.reason != "POISONED":
        part.failures += (failure,)
        state.save_partition(part)
    jobs.end(state, part.job, Outcome.FAILED, failure)


def wait_again(state: State, part: Partition) -> None:
    """Queue a partition whose lease ended through no fault of its own."""
    jobs.requeue(state, part)


def lease_dropped(state: State, lease: Lease) -> None:
    """A living prover does not hold a lease that it had taken in: its fault, counted."""
    part = lease.part
    had_right = lease.has_right
    leases.end_right(state, lease)
    if lease.lease_id in state.leases:
        leases.drop(state, lease)
    if part is None or not had_right or not part.open:
        return
    count(
        state,
        part,
        Failure(
            FailureKind.INTERNAL,
            "LEASE_LOST",
            "the prover no longer holds the lease and gave no outcome",
            lease.prover_id,
            lease.attempt,
            state.now_ns,
        ),
    )


def lease_lost(state: State, lease: Lease) -> None:
    """The prover of an ADRIFT lease did not come back with it: LOST, a crash if it was native."""
    part = lease.part
    if part is None or lease.state is not LeaseState.ADRIFT:
        return
    crashed = lease.phase in NATIVE_PHASES
    leases.end_right(state, lease)
    if not part.open:
        return
    if crashed:
        mark = CrashMark(lease.lease_id, lease.prover_id, lease.instance_id, state.now_ns)
        part.crashes += (mark,)
        index_crash(state, part, mark)
    state.save_partition(part)
    if len(part.crashes) >= state.config.max_crashes:
        where = ", ".join(sorted({mark.prover_id for mark in part.crashes}))
        times = len(part.crashes)
        detail = f"partition {part.index}: {times} times its prover was lost in it ({where})"
        _end(
            state,
            part,
            Failure(
                FailureKind.LOST,
                "CRASH_LOOP",
                detail,
                lease.prover_id,
                lease.attempt,
                state.now_ns,
            ),
        )
        return
    jobs.requeue(state, part)


def index_crash(state: State, part: Partition, mark: CrashMark) -> None:
    """Remember where a crash mark is, so that a returning instance can void it."""
    marked = state.crash_index.setdefault((mark.prover_id, mark.instance_id), {})
    marked[(part.job.job_id, part.index)] = None


def instance_returned(state: State, prover_id: str, instance_id: str) -> None:
    """The process never crashed: its crash marks are void."""
    for job_id, index in state.crash_index.pop((prover_id, instance_id), {}):
        part = state.jobs[job_id].partitions[index]
        part.crashes = tuple(
            mark
            for mark in part.crashes
            if (mark.prover_id, mark.instance_id) != (prover_id, instance_id)
        )
        state.save_partition(part)
        jobs.relane(state, part)


def timed_out(state: State, lease: Lease) -> None:
    """A lease's clock or its FETCHING ran out: the right ends, the bytes stay charged."""
    part = lease.part
    if part is None or not lease.has_right or lease.state is not LeaseState.HELD:
        return
    phase = lease.phase
    leases.end_right(state, lease)
    count(
        state,
        part,
        Failure(
            FailureKind.TIMED_OUT,
            "LEASE_TIMEOUT",
            f"no outcome within its time limit, last seen {phase.name}",
            lease.prover_id,
            lease.attempt,
            state.now_ns,
        ),
    )
