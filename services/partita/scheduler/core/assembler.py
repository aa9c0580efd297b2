"""Proofs on their way into the slots of their jobs: checked once, filled once.

A Proved becomes a check; a check has a row of its own and outlives its lease. One is in
flight per (partition, prover). The first VALID fills the slot, by one event, once: the
partition is PROVED, the lease that has the right settles, and when every slot of a job is
full the job is COMPLETED. UNCHECKED means that the verifier broke: the same bytes are checked
again later, never accepted.

An outcome of a lease counts as taken at its verdict, not before: a scheduler that dies with
the proof at the verifier must take it again from the next Actual.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from partita.scheduler.core import failures, jobs, leases, trust
from partita.scheduler.core.effects import VerifyProof
from partita.scheduler.core.model import (
    Failure,
    FailureKind,
    JobState,
    Outcome,
    PartitionState,
    Proved,
    StatementSource,
    Verdict,
)
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Check, Lease, LeaseState, Partition


def proof_digest(proof: bytes, statement: bytes) -> bytes:
    """Return the digest by which a filled slot is tied to what the verifier saw (I9)."""
    return hashlib.sha256(len(proof).to_bytes(8, "little") + proof + statement).digest()


def proved(state: State, lease: Lease, outcome: Proved) -> None:
    """Take a Proved not taken before: check it if its partition is open, whoever has the right."""
    part = lease.part
    if part is None or not part.open:
        return
    slot = (part.job.job_id, part.index, lease.prover_id)
    if slot in state.checks_by_part:
        return
    statement, source = part.spec.statement, part.spec.statement_source
    if statement is None:
        if not outcome.statement and lease.has_right and lease.state is LeaseState.HELD:
            _without_statement(state, lease, part)
            return
        statement, source = outcome.statement, StatementSource.PROVER
    check = Check(
        check_id=state.next_check,
        part=part,
        lease_id=lease.lease_id,
        prover_id=lease.prover_id,
        attempt=lease.attempt,
        proof=outcome.proof,
        statement=statement,
        statement_source=source,
        timings=outcome.timings,
        queue_ns=max(lease.granted_ns - part.queued_ns, 0),
        started_ns=state.now_ns,
    )
    state.next_check += 1
    state.checks[check.check_id] = check
    state.checks_by_part[slot] = check.check_id
    if lease.has_right and lease.state is LeaseState.HELD:
        lease.state = LeaseState.CHECKING
        leases.stop_clock(state, lease)
        state.changed(part.job)
    _send(state, check)


def _without_statement(state: State, lease: Lease, part: Partition) -> None:
    """The lease asked for the statement and the prover did not give it."""
    part.taken += (lease.lease_id,)
    leases.end_right(state, lease)
    failures.count(
        state,
        part,
        Failure(
            FailureKind.INTERNAL,
            "STATEMENT_MISSING",
            "the proof came without the statement that the lease asked for",
            lease.prover_id,
            lease.attempt,
            state.now_ns,
        ),
    )


def _send(state: State, check: Check) -> None:
    job = check.part.job
    check.in_flight = True
    state.effects.append(
        VerifyProof(
            check.check_id, job.circuit_id, job.manifest_sha256, check.statement, check.proof
        )
    )


def send_again(state: State, check_id: int) -> None:
    """Repeat a check whose verifier broke, if anybody still needs it."""
    check = state.checks.get(check_id)
    if check is None:
        return
    if not check.part.open:
        _close(state, check)
        return
    _send(state, check)


def _close(state: State, check: Check) -> None:
    del state.checks[check.check_id]
    del state.checks_by_part[(check.part.job.job_id, check.part.index, check.prover_id)]


def verdict(state: State, check_id: int, answer: Verdict, detail: str) -> None:
    """Take the verifier's answer; an unknown or repeated one does nothing."""
    check = state.checks.get(check_id)
    if check is None or not check.in_flight:
        return
    part = check.part
    if answer is Verdict.UNCHECKED and part.open:
        waits = state.config.recheck_ns
        check.in_flight = False
        state.timers.arm(
            ("recheck", "", check_id), state.now_ns + waits[min(check.retries, len(waits) - 1)]
        )
        check.retries += 1
        return
    _close(state, check)
    lease = state.leases.get(check.lease_id)
    if answer is not Verdict.UNCHECKED:
        trust.judged(state, state.prover(check.prover_id), valid=answer is Verdict.VALID)
    if not part.open:
        if answer is Verdict.INVALID and part.state is PartitionState.PROVED:
            trust.debit(state, state.prover(check.prover_id))
        return
    if check.lease_id not in part.taken:
        part.taken += (check.lease_id,)
    if answer is Verdict.VALID:
        _fill(state, check, part)
        return
    if lease is not None and lease.has_right:
        leases.end_right(state, lease)
    failures.count(
        state,
        part,
        Failure(
            FailureKind.UNVERIFIED,
            "PROOF_INVALID",
            detail,
            check.prover_id,
            check.attempt,
            state.now_ns,
        ),
    )


def _fill(state: State, check: Check, part: Partition) -> None:
    """Put a verified proof into its slot."""
    job = part.job
    right = part.lease
    jobs.withdraw(state, part)
    jobs.forget_crashes(state, part)
    part.state = PartitionState.PROVED
    part.proof = check.proof
    part.statement = check.statement
    part.statement_source = check.statement_source
    part.verified_sha256 = proof_digest(check.proof, check.statement)
    part.prover_id = check.prover_id
    part.proved_ns = state.now_ns
    part.timings = replace(
        check.timings,
        queue_ns=check.queue_ns,
        verify_ns=state.now_ns - check.started_ns,
        total_ns=state.now_ns - job.created_ns,
    )
    part.proved_record = state.save_partition(part)
    if right is not None:
        leases.settle(state, right, part.proved_record)
    prover = state.prover(check.prover_id)
    prover.proved += 1
    for failure in part.failures:
        if failure.kind is FailureKind.UNVERIFIED:
            trust.debit(state, state.prover(failure.prover_id))
    job.n_proved += 1
    state.changed(job)
    if job.n_proved == len(job.partitions) and job.state is JobState.OPEN:
        jobs.end(state, job, Outcome.COMPLETED, None)


def settled(state: State, lease_id: str) -> None:
    """The proof is durable: the lease may leave Desired."""
    lease = state.leases.get(lease_id)
    if lease is not None and lease.state is LeaseState.SETTLING:
        leases.leave(state, lease)
