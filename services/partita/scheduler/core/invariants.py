"""The invariants that tie the modules together, each checked on a state.

    I1   one terminal outcome per job, fixed at ENDING, never changed
    I2   charge(session) = sum of lease charges + key charges; recomputed = stored; no grant
         makes it exceed the total
    I3   holders of charges = leases with a session and not GONE + keys not ABSENT
    I4   for every item: charge >= what the last Actual showed
    I5   exactly one lease with right per LEASED partition, none otherwise
    I6   every lease in Desired refers only to keys that are wanted
    I7   nothing was granted past a lesser waiting partition that accepts that prover
    I8   WAITING partitions of OPEN jobs not in back-off = union of the lanes, each once
    I9   PROVED implies a VALID check of exactly those bytes against the stored statement
    I10  desired(session) is a function of the tables
    I11  without open work: no leases, no checks, charge = resident keys
    I13  every open effect has an answer outstanding or a deadline

I1's "never changed" and I12 (no single loss ends a job) speak of histories: `jobs.end` refuses
a second outcome, and the simulation holds I12.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance, backoff, dispatch, reading
from partita.scheduler.core.assembler import proof_digest
from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.model import JobState, Outcome, PartitionState
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import (
    IN_DESIRED,
    Job,
    KeyState,
    LeaseState,
    Partition,
    Session,
)


def _require(holds: bool, invariant: str, what: str) -> None:
    if not holds:
        raise CoreBug(f"{invariant}: {what}")


def check(state: State) -> None:
    """Raise `CoreBug` if an invariant does not hold."""
    state.queue.check()
    for job in state.jobs.values():
        _check_job(state, job)
    for session in state.sessions.values():
        session.ledger.check()
        _check_session(state, session)
    _check_leases(state)
    _check_checks(state)
    _check_grants(state)
    _check_totals(state)


def _check_job(state: State, job: Job) -> None:
    over = job.state in (JobState.ENDING, JobState.ENDED)
    _require((job.outcome is not None) == over, "I1", f"{job.job_id} is {job.state.name}")
    n_proved = 0
    for part in job.partitions:
        _check_partition(state, part)
        n_proved += part.state is PartitionState.PROVED
    _require(n_proved == job.n_proved, "I9", f"{job.job_id} counts {job.n_proved} of {n_proved}")
    if job.outcome is Outcome.COMPLETED:
        _require(n_proved == len(job.partitions), "I9", f"{job.job_id} COMPLETED too early")
        if job.state is JobState.ENDED:
            durable = all(p.proved_record <= state.durable_record for p in job.partitions)
            _require(durable, "I9", f"{job.job_id} ENDED with an unsaved proof")
    elif job.state is JobState.OPEN:
        _require(n_proved < len(job.partitions), "I1", f"{job.job_id} is complete and OPEN")


def _check_partition(state: State, part: Partition) -> None:
    name = f"{part.job.job_id}/{part.index}"
    leased = part.state is PartitionState.LEASED
    _require((part.lease is not None) == leased, "I5", f"{name} is {part.state.name}")
    if part.lease is not None:
        right = part.lease
        _require(state.leases.get(right.lease_id) is right, "I5", f"{name}: right without row")
        _require(right.part is part, "I5", f"{name}: another partition's lease")
        ok = right.state not in (LeaseState.LEAVING, LeaseState.SETTLING)
        _require(ok, "I5", f"{name}: right of a {right.state.name} lease")
    waits = part.state is PartitionState.WAITING and part.job.state is JobState.OPEN
    _require(
        (part.lane is not None) == (waits and not part.backing_off),
        "I8",
        f"{name} {part.state.name} backing_off={part.backing_off} lane={part.lane}",
    )
    armed = backoff.timer(part) in state.timers.armed
    listed = state.backing_off.get((part.job.job_id, part.index)) is part
    _require(armed == listed, "I13", f"{name}: back-off without its deadline")
    _require(listed or not part.backing_off, "I8", f"{name} is in no lane and does not back off")
    looked = backoff.LOOK in state.timers.armed
    _require(looked or not part.backing_off, "I13", f"{name} is in no lane and nobody looks")
    _require(part.open or not listed, "I8", f"{name} backs off and is {part.state.name}")
    if part.state is PartitionState.PROVED:
        seen = part.verified_sha256 == proof_digest(part.proof, part.statement)
        _require(seen, "I9", f"{name}: not the bytes that were verified")
        given = part.spec.statement
        _require(given is None or given == part.statement, "I9", f"{name}: another statement")
    if part.preparing is not None:
        session = state.sessions.get(part.preparing)
        bound = session is not None and session.preparing is part
        _require(bound and part.lane is not None, "I8", f"{name}: prepared without a prover")


def _check_session(state: State, session: Session) -> None:
    name = f"session {session.number}"
    holders = set(session.leases) | set(session.keys)
    _require(set(session.ledger.holders) == holders, "I3", name)
    if session.actual is not None and session.synced:
        for held in session.actual.leases:
            charge = session.ledger.of(held.lease_id)
            _require(held.held.fits(charge), "I4", f"{name}: {held.lease_id} below its report")
        for key in session.actual.keys:
            charge = session.ledger.of(key.manifest_sha256)
            _require(key.held.fits(charge), "I4", f"{name}: a key below its report")
    slots = express = 0
    references: dict[bytes, int] = {}
    for lease in session.leases.values():
        _require(lease.session == session.number, "I3", f"{name}: {lease.lease_id}")
        slots += lease.slot and not lease.express
        express += lease.slot and lease.express
        if lease.part is None:
            continue
        manifest = lease.part.job.manifest_sha256
        references[manifest] = references.get(manifest, 0) + 1
        if lease.state in IN_DESIRED:
            entry = session.keys.get(manifest)
            usable = entry is not None and (entry.wanted or entry.state is KeyState.FAILED)
            _require(usable, "I6", f"{name}: {lease.lease_id} without its key")
    _require((slots, express) == (session.used_slots, session.used_express), "I3", f"{name}: slots")
    for manifest, entry in session.keys.items():
        counted = references.get(manifest, 0)
        _require(entry.references == counted, "I6", f"{name}: references")
    remembered = reading.desired(state, session)
    for lease in session.leases.values():
        lease.order = None
    _require(remembered == reading.desired(state, session), "I10", name)
    if session.synced and session.applied < session.revision:
        armed = ("stuck", "", session.number) in state.peer_timers.armed
        _require(armed, "I13", f"{name}: Desired {session.revision} has no deadline")
    _require(("silent", "", session.number) in state.peer_timers.armed, "I13", f"{name}: silence")
    if session.preparing is not None:
        _require(session.preparing.preparing == session.number, "I8", f"{name}: preparing")
    open_now = session.number in state.open_sessions
    _require(not open_now or acceptance.accepting(state, session), "I7", f"{name}: open")


def _check_leases(state: State) -> None:
    for lease in state.leases.values():
        name = f"lease {lease.lease_id} {lease.state.name}"
        detached = lease.lease_id in state.provers[lease.prover_id].detached
        _require(detached == (lease.session is None), "I3", name)
        if lease.session is not None:
            held = state.sessions[lease.session].leases.get(lease.lease_id) is lease
            _require(held and lease.state is not LeaseState.ADRIFT, "I3", name)
        else:
            allowed = lease.state in (LeaseState.ADRIFT, LeaseState.CHECKING, LeaseState.SETTLING)
            _require(allowed, "I3", name)
        if lease.state in (LeaseState.GRANTED, LeaseState.HELD, LeaseState.CHECKING):
            _require(lease.has_right, "I5", f"{name} without right")
        if lease.state is LeaseState.ADRIFT:
            _require(lease.has_right, "I5", f"{name} without right")
            armed = ("grace", lease.lease_id, 0) in state.peer_timers.armed
            _require(armed or not state.listening, "I13", f"{name}: no grace")
        if lease.state is LeaseState.CHECKING and lease.part is not None:
            slot = (lease.part.job.job_id, lease.part.index, lease.prover_id)
            _require(slot in state.checks_by_part, "I13", f"{name}: nobody checks its proof")


def _check_checks(state: State) -> None:
    _require(len(state.checks) == len(state.checks_by_part), "I13", "checks per partition")
    for check_id, one in state.checks.items():
        armed = ("recheck", "", check_id) in state.timers.armed
        _require(armed != one.in_flight, "I13", f"check {check_id}: neither sent nor due")
    if state.after:
        waiting = min(n for n, *_ in state.after) > state.durable_record
        _require(waiting, "I13", "a durable record was not followed up")


def _check_grants(state: State) -> None:
    for number in {grant.session for grant in state.grants} & state.sessions.keys():
        ledger = state.sessions[number].ledger
        _require(
            ledger.charged.fits(ledger.total),
            "I2",
            f"a grant made session {number} hold {ledger.charged} of {ledger.total}",
        )
    if state.config.key_switch_factor == 0:
        for grant in state.grants:
            session = state.sessions.get(grant.session)
            for key, lane in state.queue.heads():
                if session is None or key >= grant.key:
                    break
                accepting = acceptance.candidates(state, lane)
                _require(session not in accepting, "I7", f"{grant.key} overtook {key}")
    if not state.want_dispatch:
        left = dispatch.startable(state)
        _require(left is None, "I7", f"{left.key if left else ''} could start and does not")


def _check_totals(state: State) -> None:
    open_jobs = [job for job in state.jobs.values() if job.state is not JobState.ENDED]
    _require(len(open_jobs) == state.open_jobs, "I11", "open jobs")
    parts = sum(len(job.partitions) for job in open_jobs if job.outcome is None)
    _require(parts == state.open_partitions, "I11", "open partitions")
    if not state.jobs or all(job.state is JobState.ENDED for job in state.jobs.values()):
        alive = [lease for lease in state.leases.values() if lease.state is not LeaseState.LEAVING]
        _require(not alive, "I11", f"leases without open work: {[x.lease_id for x in alive]}")
