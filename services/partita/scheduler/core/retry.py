"""RetryJob: a FAILED or CANCELLED job once more, with what it had proved.

It is a submission with the same request_id and digest, without a deadline: retried twice, or
submitted again meanwhile, the callers meet in one job. A job without a request_id is found by
its retry. Partitions that the retried job, or a newer one of the same identity, has PROVED are
taken over with the statement they were verified against: their inputs are not needed again.
"""

from __future__ import annotations

from partita.scheduler.core import jobs
from partita.scheduler.core.effects import Refuse
from partita.scheduler.core.events import JobRetried, JobSubmitted
from partita.scheduler.core.model import BlobRef, JobState, Outcome, PartitionState
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Job, Partition


def retry(state: State, event: JobRetried) -> None:
    """Attach to the job's retry, or accept a new job, or refuse."""
    job = state.jobs.get(event.retry_of)
    if job is None or job.state is JobState.PENDING:
        _refuse(state, event, "JOB_UNKNOWN", f"job {event.retry_of!r} is unknown")
        return
    if job.state is not JobState.ENDED or job.outcome is Outcome.COMPLETED:
        now = "COMPLETED" if job.state is JobState.ENDED else "not over"
        _refuse(
            state,
            event,
            "NOT_RETRYABLE",
            f"job {job.job_id} is {now}: only a FAILED or CANCELLED one can be retried",
        )
        return
    submission = _submission(job, event)
    newer = _newer(state, job)
    if newer is not None and newer.outcome in (None, Outcome.COMPLETED):
        jobs.attach(state, newer, submission)
        return
    circuit = state.catalogue.get(job.circuit_id)
    if circuit is not None and circuit.manifest_sha256 != job.manifest_sha256:
        _refuse(
            state,
            event,
            "NOT_RETRYABLE",
            f"circuit {job.circuit_id} has other files now: submit a new job",
        )
        return
    refusal = jobs.refuse(state, submission)
    if refusal is not None:
        state.effects.append(refusal)
        return
    jobs.accept(state, submission, _proved(state, job), job.job_id)


def inputs(state: State, job: Job) -> list[tuple[BlobRef, bytes | None]]:
    """Return the inputs that a retry of the job needs: of what nobody has proved.

    Empty where a retry would attach, or be refused because of the job's state.
    """
    if job.state is not JobState.ENDED or job.outcome is Outcome.COMPLETED:
        return []
    newer = _newer(state, job)
    if newer is not None and newer.outcome in (None, Outcome.COMPLETED):
        return []
    proved = _proved(state, job)
    return [
        (part.spec.input, part.spec.inline) for part in job.partitions if part.index not in proved
    ]


def _newer(state: State, job: Job) -> Job | None:
    """Return the newest other job of the same identity, or the job's retry."""
    found = state.identity.get((job.request_id, job.digest)) if job.request_id else None
    if found is None or found == job.job_id:
        found = state.retries.get(job.job_id)
    return state.jobs.get(found) if found is not None else None


def _proved(state: State, job: Job) -> dict[int, Partition]:
    proved: dict[int, Partition] = {}
    for source in (_newer(state, job), job):
        for part in source.partitions if source is not None else ():
            if part.state is PartitionState.PROVED:
                proved[part.index] = part
    return proved


def _submission(job: Job, event: JobRetried) -> JobSubmitted:
    return JobSubmitted(
        job_id=event.job_id,
        request_id=job.request_id,
        digest=job.digest,
        circuit_id=job.circuit_id,
        input_format=job.input_format,
        partitions=tuple(part.spec for part in job.partitions),
        caller=event.caller,
        priority=job.priority,
        retain_ns=job.retain_ns,
        abandon_after_ns=job.abandon_after_ns,
        labels=job.labels,
    )


def _refuse(state: State, event: JobRetried, reason: str, detail: str) -> None:
    state.effects.append(Refuse(event.caller, reason, detail, None))
