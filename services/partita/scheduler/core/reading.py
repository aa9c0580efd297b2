"""Views of the tables: what a prover should hold, what a client or an operator may see.

Nothing here changes what the tables say. An outcome or a proof shows only once its
record is durable.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from partita.scheduler.core import acceptance
from partita.scheduler.core.errors import JobUnknown
from partita.scheduler.core.model import (
    NOTHING,
    Desired,
    JobState,
    LeaseOrder,
    Mode,
    PartitionState,
    Phase,
    Priority,
    StatementSource,
    Timings,
)
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import (
    IN_DESIRED,
    Job,
    LaneKey,
    Lease,
    LeaseState,
    Partition,
    Session,
)
from partita.scheduler.core.views import (
    CircuitLoad,
    FleetView,
    JobView,
    LaneView,
    PartitionView,
    ProverView,
    PublicState,
)


def desired(state: State, session: Session) -> Desired:
    """Return the whole set of leases and keys of a session, in key order."""
    held = [
        (lease.part.key, lease, lease.part)
        for lease in session.leases.values()
        if lease.state in IN_DESIRED and lease.part is not None
    ]
    held.sort(key=lambda entry: (entry[0], entry[1].lease_id))
    inline_left = state.config.inline_budget_bytes
    orders = []
    for _, lease, part in held:
        inline = None if lease.listed else part.spec.inline
        if inline is not None:
            inline_left -= len(inline)
            inline = inline if inline_left >= 0 else None
        order = lease.order
        if order is None or order.inline is not inline or order.priority is not part.job.priority:
            order = lease.order = _order(lease, part, inline)
        orders.append(order)
    return Desired(
        epoch=state.epoch,
        revision=session.revision,
        leases=tuple(orders),
        keys=tuple(sorted(m for m, entry in session.keys.items() if entry.wanted)),
        drain=state.provers[session.prover_id].mode is Mode.DRAINED,
        catalogue_revision=state.catalogue_revision,
    )


def _order(lease: Lease, part: Partition, inline: bytes | None) -> LeaseOrder:
    job = part.job
    return LeaseOrder(
        lease_id=lease.lease_id,
        job_id=job.job_id,
        partition_index=part.index,
        attempt=lease.attempt,
        circuit_id=job.circuit_id,
        manifest_sha256=job.manifest_sha256,
        input=part.spec.input,
        input_format=job.input_format,
        priority=job.priority,
        job_seq=job.job_seq,
        reserved=lease.reserved,
        timeout_ns=lease.timeout_ns,
        diagnose=lease.diagnose,
        statement_sha256=part.statement_sha256,
        inline=inline,
    )


def find(state: State, job_id: str) -> Job:
    """Return a durable job.

    Raises:
        JobUnknown: no such job, not durable yet, or its retention is over.
    """
    job = state.jobs.get(job_id)
    if job is None or job.state is JobState.PENDING:
        raise JobUnknown(job_id)
    return job


def public_state(job: Job) -> PublicState:
    """Return the wire's state: the outcome once it is durable, else QUEUED or RUNNING."""
    if job.state is JobState.ENDED and job.outcome is not None:
        return PublicState(job.outcome)
    return PublicState.QUEUED if job.started_ns is None else PublicState.RUNNING


def job_view(state: State, job: Job) -> JobView:
    """Return one job as clients see it."""
    ended = job.state is JobState.ENDED
    waiting = [part for part in job.partitions if part.lane is not None]
    ahead = 0
    if waiting:
        ahead = state.queue.ahead(-job.priority, job.job_seq)
    return JobView(
        job_id=job.job_id,
        job_seq=job.job_seq,
        request_id=job.request_id,
        digest=job.digest,
        circuit_id=job.circuit_id,
        manifest_sha256=job.manifest_sha256,
        input_format=job.input_format,
        state=public_state(job),
        outcome=job.outcome if ended else None,
        priority=job.priority,
        failure=job.failure if ended else None,
        n_partitions=len(job.partitions),
        partitions_done=sum(_durably_proved(state, part) for part in job.partitions),
        partitions_ahead=ahead,
        created_ns=job.created_ns,
        started_ns=job.started_ns,
        ended_ns=job.ended_ns if ended else None,
        deadline_ns=job.deadline_ns,
        expected_end_ns=None if job.outcome is not None else _expected_end(state, job, ahead),
        labels=job.labels,
    )


def _durably_proved(state: State, part: Partition) -> bool:
    return part.state is PartitionState.PROVED and part.proved_record <= state.durable_record


def _expected_end(state: State, job: Job, ahead: int) -> int | None:
    """Return now + (ahead + own) × expected ÷ slots; None if nobody accepts the job."""
    slots = 0
    expected_ns = 0
    left = [part for part in job.partitions if part.open]
    if not left:
        return None
    for number in state.offering.get(job.manifest_sha256, ()):
        session = state.sessions[number]
        offer = session.offers[job.manifest_sha256]
        if (
            acceptance.accepting(state, session)
            and job.input_format in offer.input_formats
            and acceptance.could_hold(state, session, offer)
        ):
            probation = acceptance.on_probation(state, session)
            if probation and job.priority is Priority.CRITICAL:
                continue
            slots += 1 if probation else session.hello.max_leases
            expected_ns = max(expected_ns, offer.expected_ns)
    if not slots or not expected_ns:
        return None
    return state.now_ns + -(-(ahead + len(left)) * expected_ns // slots)


def job_page(
    state: State,
    after_seq: int,
    limit: int,
    states: frozenset[PublicState],
    *,
    circuit_id: str,
    request_id: str,
) -> list[JobView]:
    """Return a page of jobs in job_seq order."""
    page: list[JobView] = []
    for seq in state.job_order[bisect.bisect_right(state.job_order, after_seq) :]:
        job = state.job_by_seq[seq]
        if (
            job.state is JobState.PENDING
            or (states and public_state(job) not in states)
            or (circuit_id and job.circuit_id != circuit_id)
            or (request_id and job.request_id != request_id)
        ):
            continue
        if len(page) == limit:
            break
        page.append(job_view(state, job))
    return page


def partition_views(state: State, parts: Iterable[Partition]) -> list[PartitionView]:
    """Return partitions with what each waits for, or where it runs.

    What a lane waits for is found once for all of them: it looks at every prover.
    """
    reasons: dict[tuple[LaneKey | None, int | None], str] = {}
    return [_partition_view(state, part, reasons) for part in parts]


def _partition_view(
    state: State, part: Partition, reasons: dict[tuple[LaneKey | None, int | None], str]
) -> PartitionView:
    lease = part.lease
    proved = _durably_proved(state, part)
    phase, permille, prover_id = Phase.UNSPECIFIED, 0, part.prover_id if proved else ""
    waiting_for = ""
    if lease is not None:
        prover_id = lease.prover_id
        phase = Phase.CHECKING if lease.state is LeaseState.CHECKING else lease.phase
        permille = lease.permille
        if lease.state is LeaseState.ADRIFT:
            waiting_for = f"waits for {prover_id} to come back"
    elif part.state is PartitionState.WAITING:
        if part.backing_off:
            waiting_for = acceptance.waiting_for(state, part)
        else:
            same = (part.lane, part.preparing)
            if same not in reasons:
                reasons[same] = acceptance.waiting_for(state, part)
            waiting_for = reasons[same]
    shown = part.state
    if shown is PartitionState.PROVED and not proved:
        shown = PartitionState.LEASED
    source = part.spec.statement_source if not proved else part.statement_source
    return PartitionView(
        job_id=part.job.job_id,
        index=part.index,
        state=shown,
        phase=phase,
        permille=permille,
        prover_id=prover_id,
        attempt=part.attempt,
        waiting_for=waiting_for,
        proof=part.proof if proved else b"",
        statement=part.statement if proved else part.spec.statement or b"",
        statement_sha256=part.statement_sha256,
        statement_source=source if proved else source or StatementSource.UNSPECIFIED,
        failures=part.failures,
        crashes=len(part.crashes),
        timings=part.timings if proved else Timings(),
        input=part.spec.input,
    )


def fleet_view(state: State) -> FleetView:
    """Return every prover and every lane at this moment."""
    provers = []
    for prover_id in sorted(state.provers):
        prover = state.provers[prover_id]
        session = None if prover.session is None else state.sessions[prover.session]
        provers.append(
            ProverView(
                prover_id=prover_id,
                session=prover.session,
                hello=prover.hello,
                actual=None if session is None else session.actual,
                desired=None if session is None else desired(state, session),
                mode=prover.mode,
                trust=prover.trust,
                reason="; ".join(filter(None, (prover.reason, prover.trust_reason))),
                charged=NOTHING if session is None else session.ledger.charged,
                proved=prover.proved,
                failed=prover.failed,
                last_failure=prover.last_failure,
                failed_keys=tuple(prover.failed_keys.values()),
                debits=prover.debits,
                last_seen_ns=prover.last_seen_ns if session is None else session.last_seen_ns,
                unresponsive=session is not None and session.unresponsive,
                accepting=session is not None and acceptance.accepting(state, session),
            )
        )
    lanes = []
    for _, key in state.queue.heads():
        lane = state.queue.lanes[key]
        head = lane.head()
        lanes.append(
            LaneView(
                circuit_id=key.circuit_id,
                input_format=key.input_format,
                excluded=tuple(sorted(key.excluded)),
                alone=key.alone,
                waiting=lane.size,
                head_job_id=head.job.job_id,
                head_index=head.index,
                waiting_for=acceptance.waiting_for(state, head),
            )
        )
    return FleetView(state.epoch, tuple(provers), tuple(lanes), state.open_jobs, _loads(state))


def _loads(state: State) -> tuple[CircuitLoad, ...]:
    loads: dict[str, list[int]] = {}
    for job in state.jobs.values():
        if job.state is JobState.OPEN:
            load = loads.setdefault(job.circuit_id, [0, 0, 0])
            load[0] += 1
            for part in job.partitions:
                load[1] += part.state is PartitionState.WAITING
                load[2] += part.state is PartitionState.LEASED
    return tuple(CircuitLoad(name, *loads[name]) for name in sorted(loads))
