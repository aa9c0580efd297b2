"""The scheduler's metrics: one table, and the two ways by which its values come.

Counters and histograms follow from the core's events and effects (`seen`), in one place, so what
is counted is what was decided. Gauges are the core counted at the moment somebody asks
(`expose`). The parts around the core report their own durations to `checked` and `committed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from partita.scheduler.core.census import Census
from partita.scheduler.core.effects import CloseSession, Effect, Persist, Refuse
from partita.scheduler.core.events import (
    CatalogueChanged,
    Event,
    JobRetried,
    ProofChecked,
    Restored,
    SessionClosed,
    SessionOpened,
    SessionReported,
)
from partita.scheduler.core.model import KeyShown, PartitionState
from partita.scheduler.core.records import (
    JobAccepted,
    JobForgotten,
    JobRecord,
    LeaseEnded,
    LeaseRecord,
    PartitionRecord,
    Record,
)
from partita.service.fingerprint import Fingerprint
from partita.service.metering import FAST_S, SLOW_S, Meter, Spec

_BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_P = "partita_scheduler_"

SPECS = (
    Spec(f"{_P}jobs", "gauge", "Jobs in the table.", ("state", "priority")),
    Spec(f"{_P}jobs_accepted_total", "counter", "Jobs accepted.", ("circuit", "priority")),
    Spec(f"{_P}jobs_ended_total", "counter", "Jobs that ended.", ("circuit", "outcome")),
    Spec(
        f"{_P}job_seconds",
        "histogram",
        "From acceptance to end.",
        ("circuit", "outcome"),
        SLOW_S,
    ),
    Spec(f"{_P}refused_total", "counter", "Submissions refused.", ("reason",)),
    Spec(
        f"{_P}partitions",
        "gauge",
        "Partitions of open jobs: waiting (for a prover or a pause) or leased.",
        ("circuit", "state"),
    ),
    Spec(f"{_P}partitions_proved_total", "counter", "Partitions that are proved.", ("circuit",)),
    Spec(
        f"{_P}partition_failures_total",
        "counter",
        "Failures of partitions by their kind; most are followed by another try.",
        ("circuit", "kind"),
    ),
    Spec(
        f"{_P}partition_stage_seconds",
        "histogram",
        "How long proved partitions spent in each stage.",
        ("circuit", "stage"),
        SLOW_S,
    ),
    Spec(f"{_P}queue_head_age_seconds", "gauge", "How long the first waiting partition waits."),
    Spec(f"{_P}grants_total", "counter", "Leases granted.", ("circuit",)),
    Spec(
        f"{_P}first_report_seconds",
        "histogram",
        "From the grant of a lease to the first report that lists it.",
        (),
        FAST_S,
    ),
    Spec(
        f"{_P}leases",
        "gauge",
        "Leases that are not gone: granted, in a phase on the prover, checking, settling, leaving "
        "or adrift.",
        ("place",),
    ),
    Spec(f"{_P}provers", "gauge", "Known provers.", ("connected", "mode", "trust")),
    Spec(f"{_P}sessions_opened_total", "counter", "Streams of provers that were opened."),
    Spec(
        f"{_P}sessions_closed_total",
        "counter",
        "Streams that ended: by the scheduler with its reason, clean, or lost.",
        ("reason",),
    ),
    Spec(f"{_P}prover_accepting", "gauge", "1 while a prover may get new leases.", ("prover",)),
    Spec(
        f"{_P}prover_total_bytes",
        "gauge",
        "Memory that a connected prover announced.",
        ("prover", "memory"),
    ),
    Spec(
        f"{_P}prover_charged_bytes",
        "gauge",
        "Memory that is charged to leases and keys on a connected prover.",
        ("prover", "memory"),
    ),
    Spec(f"{_P}prover_keys", "gauge", "Proving keys that are ready on a prover.", ("prover",)),
    Spec(f"{_P}prover_debits", "gauge", "Standing debits of a prover.", ("prover",)),
    Spec(f"{_P}key_loads_total", "counter", "Keys loaded by provers.", ("circuit", "result")),
    Spec(f"{_P}proofs_checked_total", "counter", "Proofs looked at.", ("verdict",)),
    Spec(f"{_P}verification_batch_size", "histogram", "Proofs checked at once.", (), _BATCH),
    Spec(f"{_P}verification_seconds", "histogram", "Time for one batch of proofs.", (), FAST_S),
    Spec(f"{_P}store_commit_seconds", "histogram", "Time for one transaction.", (), FAST_S),
    Spec(f"{_P}store_unsaved_records", "gauge", "Records that are not durable yet."),
    Spec(f"{_P}store_failing", "gauge", "Transactions in a row that failed; 0 while it works."),
    Spec(f"{_P}blob_bytes", "gauge", "Bytes of stored blobs."),
    Spec(f"{_P}upload_bytes_total", "counter", "Bytes of blobs that clients uploaded."),
    Spec(f"{_P}loop_lag_seconds", "histogram", "By how much the event loop is late.", (), FAST_S),
)


@dataclass(slots=True)
class _Job:
    """What was counted of a job that has not ended."""

    circuit_id: str
    proved: set[int] = field(default_factory=set)
    failures: dict[int, int] = field(default_factory=dict)


class SchedulerMetrics:
    """The metrics of one scheduler.

    Args:
        build: what runs.
    """

    def __init__(self, build: Fingerprint) -> None:
        self._meter = Meter(SPECS, build)
        self._jobs: dict[str, _Job] = {}
        self._circuits: dict[bytes, str] = {}
        self._granted: dict[str, int] = {}
        """When each lease that no report has listed was granted."""
        self._keys: dict[int, dict[bytes, KeyShown]] = {}
        self._closing: set[int] = set()

    # What the core saw and decided

    def seen(self, event: Event | None, effects: Iterable[Effect], now_ns: int) -> None:
        """Take one event, None for a tick, and what followed from it."""
        listed: frozenset[str] = frozenset()
        match event:
            case SessionReported():
                listed = self._report(event, now_ns)
            case ProofChecked():
                self._count("proofs_checked_total", _word(event.verdict))
            case SessionOpened():
                self._count("sessions_opened_total")
            case SessionClosed():
                self._closed(event)
            case CatalogueChanged():
                self._circuits = {c.manifest_sha256: c.circuit_id for c in event.circuits}
            case Restored():
                self._restore(event)
        for effect in effects:
            match effect:
                case Persist():
                    taken_over = isinstance(event, JobRetried)
                    self._record(effect.record, listed, now_ns, taken_over=taken_over)
                case Refuse():
                    self._count("refused_total", effect.reason)
                case CloseSession():
                    self._closing.add(effect.session)
                    self._count("sessions_closed_total", effect.reason)

    def _restore(self, event: Restored) -> None:
        for accepted in event.jobs:
            if accepted.job.outcome is None:
                self._jobs[accepted.job.job_id] = _Job(accepted.job.circuit_id)
        for record in event.partitions:
            self._partition(record, counted=True)

    def _report(self, event: SessionReported, now_ns: int) -> frozenset[str]:
        actual = event.actual
        listed = frozenset([lease.lease_id for lease in actual.leases])
        for lease_id in listed & self._granted.keys():
            self._observe("first_report_seconds", now_ns - self._granted.pop(lease_id))
        before = self._keys.get(event.session)
        after = {key.manifest_sha256: key.state for key in actual.keys}
        if before != after:
            self._keys[event.session] = after
            if before is not None:
                self._key_changes(before, after)
        return listed

    def _key_changes(self, before: dict[bytes, KeyShown], after: dict[bytes, KeyShown]) -> None:
        for manifest, state in after.items():
            if state in (KeyShown.READY, KeyShown.FAILED) and before.get(manifest) is not state:
                circuit = self._circuits.get(manifest, "unknown")
                self._count("key_loads_total", circuit, _word(state))

    def _closed(self, event: SessionClosed) -> None:
        self._keys.pop(event.session, None)
        if event.session in self._closing:
            self._closing.discard(event.session)
        else:
            self._count("sessions_closed_total", "clean" if event.clean else "lost")

    def _record(
        self, record: Record, listed: frozenset[str], now_ns: int, *, taken_over: bool
    ) -> None:
        match record:
            case JobAccepted():
                job = record.job
                self._jobs[job.job_id] = _Job(job.circuit_id)
                self._count("jobs_accepted_total", job.circuit_id, _word(job.priority))
            case JobRecord() if record.outcome is not None and record.job_id in self._jobs:
                circuit = self._jobs.pop(record.job_id).circuit_id
                self._count("jobs_ended_total", circuit, _word(record.outcome))
                took_ns = (record.ended_ns or now_ns) - record.created_ns
                self._observe("job_seconds", took_ns, circuit, _word(record.outcome))
            case JobForgotten():
                self._jobs.pop(record.job_id, None)
            case PartitionRecord():
                self._partition(record, counted=taken_over)
            case LeaseRecord() if record.lease_id not in listed:
                self._granted[record.lease_id] = now_ns
                job_seen = self._jobs.get(record.job_id)
                self._count("grants_total", job_seen.circuit_id if job_seen else "unknown")
            case LeaseEnded():
                self._granted.pop(record.lease_id, None)

    def _partition(self, record: PartitionRecord, *, counted: bool) -> None:
        """Count what is new in a partition's row; `counted`: it was before, or elsewhere."""
        job = self._jobs.get(record.job_id)
        if job is None:
            return
        known = job.failures.get(record.index, 0)
        if len(record.failures) > known:
            job.failures[record.index] = len(record.failures)
        if record.state is PartitionState.PROVED and record.index not in job.proved:
            job.proved.add(record.index)
            if not counted:
                self._proved(job.circuit_id, record)
        for failure in () if counted else record.failures[known:]:
            self._count("partition_failures_total", job.circuit_id, _word(failure.kind))

    def _proved(self, circuit: str, record: PartitionRecord) -> None:
        self._count("partitions_proved_total", circuit)
        times = record.timings
        for stage in ("queue", "fetch", "key_load", "synthesis", "device", "verify", "total"):
            spent_ns = getattr(times, f"{stage}_ns")
            if spent_ns:
                self._observe("partition_stage_seconds", spent_ns, circuit, stage)

    # What the parts around the core measure

    def checked(self, n_proofs: int, spent_ns: int) -> None:
        """Take the size and duration of one batch of the verifier."""
        self._meter.observe(f"{_P}verification_batch_size", n_proofs)
        self._observe("verification_seconds", spent_ns)

    def committed(self, spent_ns: int) -> None:
        """Take the duration of one transaction that became durable."""
        self._observe("store_commit_seconds", spent_ns)

    def late(self, seconds: float) -> None:
        """Take by how much the event loop was late."""
        self._meter.observe(f"{_P}loop_lag_seconds", seconds)

    # What there is now

    def expose(
        self,
        census: Census,
        now_ns: int,
        *,
        store_failures: int,
        blob_bytes: int,
        received_bytes: int,
    ) -> bytes:
        """Return everything in Prometheus' text format.

        Args:
            census: the core, counted.
            now_ns: the scheduler's clock.
            store_failures: transactions in a row that failed.
            blob_bytes: bytes of stored blobs.
            received_bytes: bytes of uploads since the start.
        """
        age_ns = 0 if census.head_queued_ns is None else max(0, now_ns - census.head_queued_ns)
        self._meter.set(f"{_P}queue_head_age_seconds", age_ns / 1e9)
        self._meter.set(f"{_P}store_unsaved_records", census.unsaved_records)
        self._meter.set(f"{_P}store_failing", store_failures)
        self._meter.set(f"{_P}blob_bytes", blob_bytes)
        self._meter.advance(f"{_P}upload_bytes_total", received_bytes)
        self._replace("jobs", {(_word(s), p.lower()): n for (s, p), n in census.jobs.items()})
        self._replace(
            "partitions",
            {(name, "waiting"): n for name, n in census.waiting.items()}
            | {(name, "leased"): n for name, n in census.leased.items()},
        )
        self._replace("leases", {(place,): n for place, n in census.leases.items()})
        self._expose_provers(census)
        return self._meter.exposition()

    def _expose_provers(self, census: Census) -> None:
        known: dict[tuple[str, ...], float] = {}
        for p in census.provers:
            labels = (str(p.connected).lower(), _word(p.mode), _word(p.trust))
            known[labels] = known.get(labels, 0) + 1
        self._replace("provers", known)
        here = [p for p in census.provers if p.connected]
        self._replace("prover_accepting", {(p.prover_id,): p.accepting for p in here})
        self._replace("prover_keys", {(p.prover_id,): p.keys_ready for p in here})
        self._replace(
            "prover_debits", {(p.prover_id,): p.debits for p in census.provers if p.debits}
        )
        for name in ("total", "charged"):
            amounts = {p.prover_id: getattr(p, name) for p in here}
            self._replace(
                f"prover_{name}_bytes",
                {(prover, "host"): amount.host for prover, amount in amounts.items()}
                | {(prover, "device"): amount.device for prover, amount in amounts.items()},
            )

    def _count(self, name: str, *labels: str) -> None:
        self._meter.count(_P + name, *labels)

    def _observe(self, name: str, spent_ns: int, *labels: str) -> None:
        self._meter.observe(_P + name, spent_ns / 1e9, *labels)

    def _replace(self, name: str, values: Mapping[Any, float]) -> None:
        self._meter.replace(_P + name, values.items())


def _word(member: Enum) -> str:
    return member.name.lower()
