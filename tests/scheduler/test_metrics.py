"""Metrics: what a job leaves in /metrics, what probes are told, and that no id is a label."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from partita.scheduler.core.census import Census
from partita.scheduler.core.effects import Persist, Refuse
from partita.scheduler.core.events import (
    CatalogueChanged,
    JobRetried,
    ListenerOpened,
    Restored,
    SessionReported,
)
from partita.scheduler.core.model import (
    Actual,
    Bytes,
    CircuitInfo,
    Failure,
    FailureKind,
    HeldKey,
    HeldLease,
    JobState,
    KeyShown,
    Outcome,
    PartitionState,
    Phase,
    Priority,
    StatementSource,
    Timings,
)
from partita.scheduler.core.records import JobAccepted, JobRecord, LeaseRecord, PartitionRecord
from partita.scheduler.core.views import PublicState
from partita.scheduler.metrics import SPECS, SchedulerMetrics
from partita.service.fingerprint import Fingerprint
from partita.service.grpcio import AddressInUseError
from partita.service.metering import BUILD_INFO
from tests.scheduler.peer import Prover, connected
from tests.scheduler.running import running
from tests.scheduler.stores import FailingStore

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVING = health_pb2.HealthCheckResponse.SERVING
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]
NO_CENSUS = Census({}, {}, {}, {}, None, (), 0)


def values_of(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values[f"partita_scheduler_{name}", tuple(sorted(labels.items()))]


async def get(address: str, path: str) -> tuple[int, str]:
    """Ask over HTTP, in a thread, because the server is on this loop."""

    def ask() -> tuple[int, str]:
        host, _, port = address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def test_a_job_and_its_prover_show_in_the_metrics(data_dir: Path, prover: Prover) -> None:
    async with running(data_dir, prover, metrics_listen="127.0.0.1:0") as service:
        address = service.scheduler.addresses.metrics
        run_file = json.loads((data_dir / "run" / "scheduler.json").read_text())
        assert run_file["metrics_listen"] == address
        async with connected(service.peer("gpu-7")):
            answer = await service.submit([(2, 3), (4, 5)], request_id="a-request")
            job_id = answer.job.job_id
            await service.end_of(job_id)
            status, text = await get(address, "/metrics")
        assert status == 200
        values = values_of(text)
        assert value(values, "jobs", state="completed", priority="normal") == 1
        assert value(values, "jobs_accepted_total", circuit="product", priority="normal") == 1
        assert value(values, "jobs_ended_total", circuit="product", outcome="completed") == 1
        assert value(values, "job_seconds_count", circuit="product", outcome="completed") == 1
        assert value(values, "partitions_proved_total", circuit="product") == 2
        assert value(values, "grants_total", circuit="product") == 2
        assert value(values, "first_report_seconds_count") == 2
        assert value(values, "proofs_checked_total", verdict="valid") == 2
        assert value(values, "verification_batch_size_sum") == 2
        assert value(values, "store_commit_seconds_count") > 0
        assert value(values, "prover_accepting", prover="gpu-7") == 1
        assert value(values, "prover_total_bytes", prover="gpu-7", memory="host") == 64 << 20
        assert value(values, "prover_charged_bytes", prover="gpu-7", memory="host") >= 10 << 20
        assert value(values, "prover_keys", prover="gpu-7") == 1
        assert value(values, "key_loads_total", circuit="product", result="ready") == 1
        assert job_id not in text
        assert "a-request" not in text


async def test_what_is_exposed_is_in_the_table_and_nothing_else(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, metrics_listen="127.0.0.1:0") as service:
        _, text = await get(service.scheduler.addresses.metrics, "/metrics")
    shown = set(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    table = {(spec.name, spec.kind) for spec in (BUILD_INFO, *SPECS)}
    assert {x for x in shown if not x[0].startswith("process_")} == table
    assert not {"job", "job_id", "request_id", "lease", "lease_id"} & {
        label for spec in SPECS for label in spec.labels
    }


async def test_probes_say_ready_and_alive_over_http_and_grpc(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, metrics_listen="127.0.0.1:0") as service:
        address = service.scheduler.addresses.metrics
        for path in ("/healthz", "/readyz"):
            assert await get(address, path) == (200, '{"ok":true,"why_not":[]}')
        assert (await get(address, "/nowhere"))[0] == 404
        stub = health_pb2_grpc.HealthStub(service.channel)
        for name in ("", "readiness", "liveness", "partita.v1.ProvingService"):
            assert await _health(stub, name) == SERVING


async def _health(stub: health_pb2_grpc.HealthStub, name: str) -> int:
    return int((await stub.Check(health_pb2.HealthCheckRequest(service=name))).status)


async def test_a_store_that_is_behind_makes_it_not_ready_but_alive(
    data_dir: Path, prover: Prover
) -> None:
    store = FailingStore(data_dir / "store.db")
    async with running(
        data_dir,
        prover,
        store,
        store_retry="20ms",
        max_unsaved_records=1,
        metrics_listen="127.0.0.1:0",
    ) as service:
        address = service.scheduler.addresses.metrics
        stub = health_pb2_grpc.HealthStub(service.channel)
        told = stub.Watch(health_pb2.HealthCheckRequest(service="readiness"))
        assert (await told.read()).status == SERVING
        store.away.set()
        call = asyncio.create_task(service.submit([(2, 3)]))
        assert (await told.read()).status == NOT_SERVING
        assert await _health(stub, "") == NOT_SERVING
        assert await _health(stub, "liveness") == SERVING
        assert (await get(address, "/healthz"))[0] == 200
        status, why = await get(address, "/readyz")
        assert (status, "the store is behind" in why) == (503, True)
        values = values_of((await get(address, "/metrics"))[1])
        assert value(values, "store_failing") > 0
        store.away.clear()
        assert (await told.read()).status == SERVING
        assert (await get(address, "/readyz"))[0] == 200
        await call
        told.cancel()


async def test_a_taken_metrics_port_is_refused_by_name_and_nothing_stays_behind(
    data_dir: Path, tmp_path: Path, prover: Prover, circuits: Path
) -> None:
    async with running(data_dir, prover, metrics_listen="127.0.0.1:0") as service:
        taken = service.scheduler.addresses.metrics
        other = tmp_path / "other"
        shutil.copytree(circuits, other / "circuits")
        with pytest.raises(AddressInUseError, match=f"metrics_listen = {taken}"):
            async with running(other, prover, metrics_listen=taken):
                pass
        assert (await get(taken, "/readyz"))[0] == 200
    async with running(other, prover, metrics_listen=taken) as service:
        assert (await get(taken, "/readyz"))[0] == 200


# What is counted, without a scheduler


def job(outcome: Outcome | None = None) -> JobRecord:
    return JobRecord(
        job_id="j",
        job_seq=1,
        request_id="",
        digest=b"",
        circuit_id="c",
        manifest_sha256=b"m",
        input_format="wtns",
        priority=Priority.HIGH,
        state=JobState.OPEN if outcome is None else JobState.ENDED,
        outcome=outcome,
        failure=None,
        deadline_ns=None,
        retain_ns=0,
        abandon_after_ns=None,
        created_ns=0,
        started_ns=None,
        ended_ns=None if outcome is None else 2 * 10**9,
        labels=(),
    )


def partition(state: PartitionState, n_failures: int = 0) -> PartitionRecord:
    failure = Failure(FailureKind.COMPUTE, "SICK")
    return PartitionRecord(
        job_id="j",
        index=0,
        state=state,
        attempt=1,
        failures=(failure,) * n_failures,
        crashes=(),
        taken=(),
        proof=b"",
        statement=b"",
        statement_source=StatementSource.INPUT,
        prover_id="",
        proved_ns=None,
        timings=Timings(device_ns=10**9),
    )


def counted(*steps: tuple[Any, Sequence[Any]], census: Census = NO_CENSUS) -> Values:
    """Return the metrics after (event, effects) pairs, a second apart."""
    metrics = SchedulerMetrics(Fingerprint())
    for second, (event, effects) in enumerate(steps):
        metrics.seen(event, effects, second * 10**9)
    text = metrics.expose(
        census, len(steps) * 10**9, store_failures=0, blob_bytes=0, received_bytes=5
    )
    return values_of(text.decode())


def test_each_failure_and_each_proof_is_counted_once_however_often_its_row_is_saved() -> None:
    values = counted(
        (None, [Persist(1, JobAccepted(job(), ()))]),
        (None, [Persist(2, partition(PartitionState.WAITING, 1))]),
        (None, [Persist(3, partition(PartitionState.WAITING, 1))]),
        (None, [Persist(4, partition(PartitionState.PROVED, 2))]),
        (None, [Persist(5, partition(PartitionState.PROVED, 2))]),
        (None, [Persist(6, job(Outcome.COMPLETED))]),
        (None, [Persist(7, job(Outcome.COMPLETED))]),
    )
    assert value(values, "partition_failures_total", circuit="c", kind="compute") == 2
    assert value(values, "partitions_proved_total", circuit="c") == 1
    assert value(values, "partition_stage_seconds_sum", circuit="c", stage="device") == 1
    assert value(values, "jobs_ended_total", circuit="c", outcome="completed") == 1
    assert value(values, "job_seconds_sum", circuit="c", outcome="completed") == 2


def test_what_a_restart_or_a_retry_brings_along_is_not_counted_again() -> None:
    row = partition(PartitionState.PROVED, 1)
    restored = Restored(1, jobs=(JobAccepted(job(), ()),), partitions=(row,))
    effects = [Persist(1, JobAccepted(job(), ())), Persist(2, row)]
    for values in (
        counted((restored, []), (ListenerOpened(), [Persist(1, row)])),
        counted((JobRetried("j", "older", 1), effects)),
    ):
        names = {name for name, _ in values}
        assert "partita_scheduler_partitions_proved_total" not in names
        assert "partita_scheduler_partition_failures_total" not in names


def _reported(*leases: str, key: KeyShown = KeyShown.READY) -> SessionReported:
    held = tuple(HeldLease(x, "j", 0, 1, Phase.FETCHING, Bytes()) for x in leases)
    keys = (HeldKey(b"m", key, Bytes()),)
    return SessionReported(1, Actual(0, leases=held, keys=keys), frozenset())


def test_the_first_report_of_a_lease_is_timed_and_an_adopted_lease_is_no_grant() -> None:
    lease = LeaseRecord("1.1", "j", 0, 1, "p", "i", Bytes())
    granted = counted(
        (None, [Persist(1, JobAccepted(job(), ())), Persist(2, lease)]),
        (_reported(), []),
        (_reported("1.1"), []),
        (_reported("1.1"), []),
    )
    assert value(granted, "grants_total", circuit="c") == 1
    assert value(granted, "first_report_seconds_sum") == 2
    assert value(granted, "first_report_seconds_count") == 1
    adopted = counted((_reported("1.1"), [Persist(1, lease)]), (_reported("1.1"), []))
    assert value(adopted, "first_report_seconds_count") == 0
    assert "partita_scheduler_grants_total" not in {name for name, _ in adopted}


def test_a_key_that_a_session_begins_with_was_not_loaded() -> None:
    known = CatalogueChanged(b"r", (CircuitInfo("c", b"m", ("wtns",)),))
    values = counted(
        (known, []),
        (_reported(), []),
        (_reported(key=KeyShown.LOADING), []),
        (_reported(key=KeyShown.READY), []),
        (_reported(key=KeyShown.READY), []),
        (_reported(key=KeyShown.FAILED), []),
        (None, [Refuse(1, "QUEUE_FULL", "", None)]),
    )
    assert value(values, "key_loads_total", circuit="c", result="ready") == 1
    assert value(values, "key_loads_total", circuit="c", result="failed") == 1
    assert value(values, "refused_total", reason="QUEUE_FULL") == 1
    assert value(values, "upload_bytes_total") == 5


def test_gauges_are_the_census() -> None:
    census = Census(
        jobs={(PublicState.QUEUED, "HIGH"): 3},
        waiting={"c": 4},
        leased={"c": 1},
        leases={"proving": 1},
        head_queued_ns=10**9,
        provers=(),
        unsaved_records=7,
    )
    values = counted((None, []), (None, []), (None, []), census=census)
    assert value(values, "jobs", state="queued", priority="high") == 3
    assert value(values, "partitions", circuit="c", state="waiting") == 4
    assert value(values, "partitions", circuit="c", state="leased") == 1
    assert value(values, "leases", place="proving") == 1
    assert value(values, "queue_head_age_seconds") == 2
    assert value(values, "store_unsaved_records") == 7
