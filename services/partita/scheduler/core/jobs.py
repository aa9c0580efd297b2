"""Jobs: identity, acceptance, waiters, deadlines, the one end, retention.

    PENDING → (Persisted) → OPEN → ENDING → (Persisted) → ENDED → forgotten

A submission is identified by (request_id, digest); see `submit`. The outcome of a job is
fixed by `end`, once, and is shown when it is durable. Cancel in PENDING ends the job too.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Mapping
from dataclasses import replace

from partita.scheduler.core import acceptance, backoff, leases
from partita.scheduler.core.effects import Accept, AnswerWaiter, DropInputs, Refuse
from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.events import JobSubmitted
from partita.scheduler.core.model import (
    NOTHING,
    CircuitInfo,
    Failure,
    FailureKind,
    JobState,
    Outcome,
    PartitionState,
    Priority,
)
from partita.scheduler.core.queue import lane_key
from partita.scheduler.core.records import JobAccepted, JobForgotten
from partita.scheduler.core.state import After, State, job_record
from partita.scheduler.core.tables import Job, Partition


def submit(state: State, event: JobSubmitted) -> None:
    """Attach to a job with the same identity, or accept a new one, or refuse.

    same id and digest, not finished     attach; a higher priority raises it
    same id and digest, COMPLETED, kept  the kept result
    same id and digest, FAILED/CANCELLED a new job
    other digest, or an empty id         a new job
    """
    known = state.identity.get((event.request_id, event.digest)) if event.request_id else None
    job = state.jobs.get(known) if known is not None else None
    if job is not None and job.outcome in (None, Outcome.COMPLETED):
        attach(state, job, event)
        return
    refusal = refuse(state, event)
    if refusal is not None:
        state.effects.append(refusal)
        return
    accept(state, event, {})


def attach(state: State, job: Job, event: JobSubmitted) -> None:
    """Answer a submission with a job of the same identity that goes on or is COMPLETED."""
    if job.state is JobState.ENDED:
        state.effects.append(Accept(event.caller, job.job_id, attached=True))
        return
    if job.state is JobState.ENDING:
        state.when_durable(job.end_record, After.ATTACH, job.job_id, event.caller)
        return
    before = (job.priority, job.deadline_ns, job.abandon_after_ns, job.retain_ns)
    if event.priority > job.priority:
        _raise_priority(state, job, event.priority)
    job.deadline_ns = _laxer(job.deadline_ns, event.deadline_ns)
    job.abandon_after_ns = _laxer(job.abandon_after_ns, event.abandon_after_ns)
    job.retain_ns = max(job.retain_ns, event.retain_ns or 0)
    changed = before != (job.priority, job.deadline_ns, job.abandon_after_ns, job.retain_ns)
    _arm_deadline(state, job)
    arm_abandon(state, job)
    if changed:
        record = state.save_job(job)
        state.changed(job)
        state.when_durable(record, After.ATTACH, job.job_id, event.caller)
    elif job.state is JobState.PENDING:
        job.callers.append((event.caller, True))
    else:
        state.effects.append(Accept(event.caller, job.job_id, attached=True))


def _laxer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _raise_priority(state: State, job: Job, priority: Priority) -> None:
    """Re-key the waiting partitions and tell the provers of the held ones."""
    queued = [part for part in job.partitions if part.lane is not None]
    for part in queued:
        state.queue.remove(part)
    job.priority = priority
    for part in queued:
        state.queue.add(part)
    for part in job.partitions:
        session = state.session_of(part.lease) if part.lease is not None else None
        if session is not None:
            state.touch(session)
    state.want_dispatch = True


def refuse(state: State, event: JobSubmitted) -> Refuse | None:
    """Return why no new job can be made of a submission, or None."""
    config = state.config
    circuit = state.catalogue.get(event.circuit_id)

    def refusal(reason: str, detail: str, retry_ns: int | None = None) -> Refuse:
        return Refuse(event.caller, reason, detail, retry_ns)

    if circuit is None:
        return refusal(
            "UNKNOWN_CIRCUIT", f"circuit_id {event.circuit_id!r} is not in the catalogue"
        )
    if event.input_format not in circuit.input_formats:
        return refusal(
            "UNKNOWN_FORMAT",
            f"input_format {event.input_format!r}: circuit {event.circuit_id} takes "
            + ", ".join(circuit.input_formats),
        )
    if not event.partitions:
        return refusal("BAD_INPUT", "partitions: a job needs at least one")
    if event.job_id in state.jobs:
        return refusal("BAD_INPUT", f"job_id {event.job_id!r} is in use")
    unsaved = state.next_record - 1 - state.durable_record
    if unsaved >= config.max_unsaved_records:
        return refusal(
            "STORE_BEHIND", f"{unsaved} records are not saved yet", config.refuse_retry_ns
        )
    if (
        state.open_jobs >= config.max_open_jobs
        or state.open_partitions + len(event.partitions) > config.max_open_partitions
    ):
        return refusal(
            "QUEUE_FULL",
            f"{state.open_jobs} of {config.max_open_jobs} jobs and {state.open_partitions} of "
            f"{config.max_open_partitions} partitions are open",
            config.refuse_retry_ns,
        )
    return _too_large(state, event, circuit)


def _too_large(state: State, event: JobSubmitted, circuit: CircuitInfo) -> Refuse | None:
    """Refuse only if connected provers offer the circuit and none could hold it empty.

    The refusal names the prover that lacks the least, with what is needed and what it holds.
    """
    lacking: list[tuple[int, str]] = []
    for number in state.offering.get(circuit.manifest_sha256, ()):
        session = state.sessions[number]
        offer = session.offers[circuit.manifest_sha256]
        if event.input_format not in offer.input_formats:
            continue
        peak, total = acceptance.peak_of(state, session, offer), session.hello.total
        short = (offer.key + peak - total).most(NOTHING)
        if short == NOTHING:
            return None
        text = (
            f"circuit {event.circuit_id} needs {acceptance.amounts(offer.key)} for its key and "
            f"{acceptance.amounts(peak)} for a lease; {session.prover_id} comes closest and has "
            f"{acceptance.amounts(total)}"
        )
        lacking.append((short.host + short.device, text))
    return Refuse(event.caller, "TOO_LARGE_FOR_FLEET", min(lacking)[1], None) if lacking else None


def accept(
    state: State, event: JobSubmitted, proved: Mapping[int, Partition], retry_of: str = ""
) -> None:
    """Make a new job of a submission that nothing refuses.

    `proved` are partitions of a job with the same digest, by index, whose proofs it takes over.
    """
    config = state.config
    circuit = state.catalogue[event.circuit_id]
    job = Job(
        job_id=event.job_id,
        job_seq=state.next_job_seq,
        request_id=event.request_id,
        digest=event.digest,
        circuit_id=event.circuit_id,
        manifest_sha256=circuit.manifest_sha256,
        input_format=event.input_format,
        priority=event.priority,
        deadline_ns=event.deadline_ns,
        retain_ns=config.retain_ns if event.retain_ns is None else event.retain_ns,
        abandon_after_ns=event.abandon_after_ns,
        created_ns=state.now_ns,
        labels=event.labels,
        retry_of=retry_of,
        callers=[(event.caller, False)],
    )
    job.partitions = [
        Partition(
            job,
            index,
            spec,
            b"" if spec.statement is None else hashlib.sha256(spec.statement).digest(),
            state.now_ns,
        )
        for index, spec in enumerate(event.partitions)
    ]
    enter(state, job)
    state.open_jobs += 1
    state.open_partitions += len(job.partitions)
    record = state.persist(JobAccepted(job_record(job), event.partitions))
    for index, source in proved.items():
        record = _take_over(state, job.partitions[index], source)
    state.when_durable(record, After.ACCEPT, job.job_id)
    _arm_deadline(state, job)


def _take_over(state: State, part: Partition, source: Partition) -> int:
    """Fill a slot with the verified proof of the same partition in an earlier job."""
    part.state = PartitionState.PROVED
    part.attempt = source.attempt
    part.failures = source.failures
    part.proof = source.proof
    part.statement = source.statement
    part.statement_source = source.statement_source
    part.verified_sha256 = source.verified_sha256
    part.prover_id = source.prover_id
    part.proved_ns = source.proved_ns
    part.timings = source.timings
    part.job.n_proved += 1
    part.proved_record = state.save_partition(part)
    return part.proved_record


def enter(state: State, job: Job) -> None:
    """Enter a job into the tables that find it."""
    if job.retry_of:
        state.retries[job.retry_of] = job.job_id
    state.jobs[job.job_id] = job
    state.job_by_seq[job.job_seq] = job
    bisect.insort(state.job_order, job.job_seq)
    state.next_job_seq = max(state.next_job_seq, job.job_seq + 1)
    if job.request_id:
        state.identity[(job.request_id, job.digest)] = job.job_id


def accepted(state: State, job: Job) -> None:
    """The acceptance is durable: answer the callers, open the job unless it has ended."""
    state.effects.extend(Accept(caller, job.job_id, attached) for caller, attached in job.callers)
    job.callers = []
    if job.state is JobState.PENDING:
        open_job(state, job)


def open_job(state: State, job: Job) -> None:
    """Queue the partitions of a durable job; one whose slots are all full ends."""
    job.state = JobState.OPEN
    for part in job.partitions:
        if part.state is PartitionState.WAITING:
            state.queue.add(part)
    state.want_dispatch = True
    _arm_deadline(state, job)
    if state.listening:
        arm_abandon(state, job)
    state.changed(job)
    if job.n_proved == len(job.partitions):
        end(state, job, Outcome.COMPLETED, None)


def _arm_deadline(state: State, job: Job) -> None:
    name = ("deadline", job.job_id, 0)
    if job.deadline_ns is None:
        state.timers.disarm(name)
    else:
        state.timers.arm(name, job.deadline_ns)


def arm_abandon(state: State, job: Job) -> None:
    """Start or stop the clock of a job that nobody waits for."""
    name = ("abandon", job.job_id, 0)
    if job.state is not JobState.OPEN or job.waiters or job.abandon_after_ns is None:
        state.timers.disarm(name)
    else:
        state.timers.arm(name, state.now_ns + job.abandon_after_ns)


def join(state: State, job_id: str, waiter: int) -> None:
    """Enter a waiter; one that comes after the end is answered at once."""
    job = state.jobs.get(job_id)
    if job is None or job.state is JobState.ENDED:
        state.effects.append(AnswerWaiter(waiter, job_id))
        return
    job.waiters[waiter] = None
    arm_abandon(state, job)


def leave(state: State, job_id: str, waiter: int) -> None:
    """Forget a waiter."""
    job = state.jobs.get(job_id)
    if job is not None and waiter in job.waiters:
        del job.waiters[waiter]
        arm_abandon(state, job)


def cancel(state: State, job: Job, by: str) -> None:
    """End a job that has no outcome yet."""
    if job.outcome is None:
        why = Failure(FailureKind.INTERNAL, "CANCELLED", f"cancelled by {by}", "", 0, state.now_ns)
        end(state, job, Outcome.CANCELLED, why)


def end(state: State, job: Job, outcome: Outcome, failure: Failure | None) -> None:
    """Fix the one outcome of a job: nothing of it waits or has a right any more."""
    if job.outcome is not None:
        raise CoreBug(f"I1: {job.job_id} ends as {outcome.name}, it is {job.outcome.name}")
    job.state = JobState.ENDING
    job.outcome = outcome
    job.failure = failure
    job.ended_ns = state.now_ns
    state.timers.disarm(("deadline", job.job_id, 0))
    state.timers.disarm(("abandon", job.job_id, 0))
    job.end_record = state.save_job(job)
    state.when_durable(job.end_record, After.END, job.job_id)
    state.open_partitions -= len(job.partitions)
    for part in job.partitions:
        forget_crashes(state, part)
        if part.state in (PartitionState.WAITING, PartitionState.LEASED):
            withdraw(state, part)
            part.state = PartitionState.DROPPED
            if part.lease is not None:
                leases.end_right(state, part.lease)
    state.want_dispatch = True
    state.changed(job)


def withdraw(state: State, part: Partition) -> None:
    """Take a partition out of the queue, its back-off and its preparation."""
    state.queue.remove(part)
    backoff.end(state, part)
    leases.unbind(state, part)


def forget_crashes(state: State, part: Partition) -> None:
    """Take a partition's crash marks out of the index."""
    for mark in part.crashes:
        marked = state.crash_index.get((mark.prover_id, mark.instance_id))
        if marked is not None:
            marked.pop((part.job.job_id, part.index), None)
            if not marked:
                del state.crash_index[(mark.prover_id, mark.instance_id)]


def requeue(state: State, part: Partition, *, failed: bool = False) -> None:
    """Let a partition wait again with the same key; after a counted failure it backs off."""
    part.state = PartitionState.WAITING
    part.queued_ns = state.now_ns
    state.want_dispatch = True
    state.changed(part.job)
    if failed:
        backoff.begin(state, part)
    backoff.queue(state, part)


def relane(state: State, part: Partition) -> None:
    """Move a waiting partition to the lane that its exclusions and crashes now name."""
    if part.lane is not None and part.lane != lane_key(part, state.config.alone_after_crashes):
        state.queue.remove(part)
        state.queue.add(part)
        state.want_dispatch = True


def ended(state: State, job: Job) -> None:
    """The outcome is durable: show it, answer the waiters, start the retention."""
    job.state = JobState.ENDED
    state.open_jobs -= 1
    state.effects.extend(AnswerWaiter(waiter, job.job_id) for waiter in job.waiters)
    job.waiters = {}
    state.changed(job)
    keep(state, job)


def keep(state: State, job: Job) -> None:
    """Keep an ENDED job for its retention, within the bytes of all kept results."""
    size = sum(len(part.proof) + len(part.statement) for part in job.partitions)
    state.kept[job.job_id] = size
    state.kept_bytes += size
    since_ns = job.created_ns if job.ended_ns is None else job.ended_ns
    state.timers.arm(("forget", job.job_id, 0), since_ns + job.retain_ns)
    if job.outcome is Outcome.COMPLETED:
        drop_inputs(state, job)
    else:
        state.timers.arm(("inputs", job.job_id, 0), since_ns + state.config.keep_inputs_ns)
    while state.kept_bytes > state.config.retain_bytes and len(state.kept) > 1:
        forget(state, state.jobs[next(iter(state.kept))])


def drop_inputs(state: State, job: Job) -> None:
    """Nobody needs the inputs of an ENDED job any more; what its rows hold of them goes too."""
    for part in job.partitions:
        if part.spec.inline is not None:
            part.spec = replace(part.spec, inline=None)
    state.effects.append(DropInputs(job.job_id))


def forget(state: State, job: Job) -> None:
    """The retention is over: nothing of the job is left."""
    state.timers.disarm(("forget", job.job_id, 0))
    if ("inputs", job.job_id, 0) in state.timers.armed:
        state.timers.disarm(("inputs", job.job_id, 0))
        state.effects.append(DropInputs(job.job_id))
    state.persist(JobForgotten(job.job_id))
    del state.jobs[job.job_id]
    del state.job_by_seq[job.job_seq]
    del state.job_order[bisect.bisect_left(state.job_order, job.job_seq)]
    if state.identity.get((job.request_id, job.digest)) == job.job_id:
        del state.identity[(job.request_id, job.digest)]
    state.retries.pop(job.job_id, None)
    if state.retries.get(job.retry_of) == job.job_id:
        del state.retries[job.retry_of]
    state.kept_bytes -= state.kept.pop(job.job_id, 0)
    job.partitions.clear()  # they refer to their job: no cycle is left behind
