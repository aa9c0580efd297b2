"""From a store's rows back to the tables, once, at boot.

What was acknowledged is there: durable jobs are OPEN with their queue keys, PROVED slots stay
full, and a partition whose lease is remembered is held for that prover (ADRIFT) until it
reports or the grace passes. Graces and abandon clocks start with `listening`, because nobody
can come back before.
"""

from __future__ import annotations

import hashlib

from partita.scheduler.core import assembler, failures, jobs, leases, trust
from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.events import Restored
from partita.scheduler.core.model import JobState, PartitionState
from partita.scheduler.core.records import JobAccepted, LeaseEnded, LeaseRecord, PartitionRecord
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Job, Lease, LeaseState, Partition, Prover


def restore(state: State, event: Restored) -> None:
    """Fill empty tables from the store's rows.

    Raises:
        CoreBug: called twice.
    """
    if state.restored:
        raise CoreBug("Restored arrives once, first")
    state.restored = True
    state.epoch = event.epoch
    state.last_mark_ns = event.clock_mark_ns
    for record in event.provers:
        state.provers[record.prover_id] = Prover(
            record.prover_id,
            record.mode,
            record.trust,
            record.reason,
            record.trust_reason,
            record.quarantined_until_ns,
            record.debits,
            record.proved,
            record.failed,
        )
        trust.resume(state, state.provers[record.prover_id])
    state.pins = {
        (pin.manifest_sha256, pin.prover_id): pin.pinned
        for pin in event.pins
        if pin.pinned is not None
    }
    for accepted in sorted(event.jobs, key=lambda entry: entry.job.job_seq):
        jobs.enter(state, _job(accepted))
    for row in event.partitions:
        job = state.jobs.get(row.job_id)
        if job is not None and row.index < len(job.partitions):
            _fill(job.partitions[row.index], row)
    for lease in event.leases:
        _remember(state, lease)
    for job in list(state.jobs.values()):
        _resume(state, job)


def _job(accepted: JobAccepted) -> Job:
    row = accepted.job
    job = Job(
        job_id=row.job_id,
        job_seq=row.job_seq,
        request_id=row.request_id,
        digest=row.digest,
        circuit_id=row.circuit_id,
        manifest_sha256=row.manifest_sha256,
        input_format=row.input_format,
        priority=row.priority,
        deadline_ns=row.deadline_ns,
        retain_ns=row.retain_ns,
        abandon_after_ns=row.abandon_after_ns,
        created_ns=row.created_ns,
        labels=row.labels,
        retry_of=row.retry_of,
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        started_ns=row.started_ns,
        ended_ns=row.ended_ns,
    )
    job.partitions = [
        Partition(
            job,
            index,
            spec,
            b"" if spec.statement is None else hashlib.sha256(spec.statement).digest(),
            row.created_ns,
        )
        for index, spec in enumerate(accepted.partitions)
    ]
    return job


def _fill(part: Partition, row: PartitionRecord) -> None:
    part.state = row.state
    part.attempt = row.attempt
    part.failures = row.failures
    part.crashes = row.crashes
    part.taken = row.taken
    part.excluded = failures.excluded_by(row.failures)
    part.prover_id = row.prover_id
    part.proved_ns = row.proved_ns
    part.timings = row.timings
    if row.state is PartitionState.PROVED:
        part.proof = row.proof
        part.statement = row.statement
        part.statement_source = row.statement_source
        part.verified_sha256 = assembler.proof_digest(row.proof, row.statement)
        part.job.n_proved += 1


def _remember(state: State, row: LeaseRecord) -> None:
    """Hold a partition for the prover that was given it, unless its right had ended."""
    job = state.jobs.get(row.job_id)
    part = None
    if job is not None and job.state is JobState.OPEN and row.index < len(job.partitions):
        part = job.partitions[row.index]
    if (
        part is None
        or part.state is not PartitionState.WAITING
        or row.lease_id in part.taken
        or any((f.attempt, f.prover_id) == (row.attempt, row.prover_id) for f in part.failures)
    ):
        state.persist(LeaseEnded(row.lease_id))
        return
    timeout_ns, fetch_ns = leases.timeouts(state, None, row.attempt)
    lease = Lease(
        lease_id=row.lease_id,
        part=part,
        attempt=row.attempt,
        prover_id=row.prover_id,
        instance_id=row.instance_id,
        session=None,
        state=LeaseState.ADRIFT,
        reserved=row.reserved,
        timeout_ns=timeout_ns,
        fetch_timeout_ns=fetch_ns,
        grant_revision=0,
        granted_ns=state.now_ns,
    )
    part.attempt = max(part.attempt, row.attempt)
    leases.give_right(state, lease, part)
    state.prover(row.prover_id).detached[row.lease_id] = lease


def _resume(state: State, job: Job) -> None:
    if job.state is JobState.ENDED:
        for part in job.partitions:
            if part.state is not PartitionState.PROVED:
                part.state = PartitionState.DROPPED
        jobs.keep(state, job)
        return
    if job.started_ns is None and any(part.attempt for part in job.partitions):
        proved = [part.proved_ns for part in job.partitions if part.proved_ns is not None]
        job.started_ns = min(proved, default=state.now_ns)
    state.open_jobs += 1
    state.open_partitions += len(job.partitions)
    for part in job.partitions:
        for mark in part.crashes:
            failures.index_crash(state, part, mark)
    jobs.open_job(state, job)


def listening(state: State) -> None:
    """Peers can connect from now on: start the graces and the abandon clocks."""
    state.listening = True
    for lease in state.leases.values():
        if lease.state is LeaseState.ADRIFT:
            leases.arm_grace(state, lease)
    for job in state.jobs.values():
        jobs.arm_abandon(state, job)
