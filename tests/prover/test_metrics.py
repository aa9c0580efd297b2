"""The prover's metrics: what is counted, and what is asked over HTTP."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import (
    Actual,
    BlobRef,
    Bytes,
    Failure,
    FailureKind,
    HeldKey,
    HeldLease,
    KeyState,
    LeaseOrder,
    Phase,
)
from partita.prover.metrics import SPECS, ProverMetrics
from partita.service.fingerprint import Fingerprint
from partita.service.metering import BUILD_INFO
from tests.prover.circuits_on_disk import ONE_CONSTRAINT, add, lease_of
from tests.prover.peer import serving
from tests.prover.whole import outcome, prover_on, run_file

if TYPE_CHECKING:
    from pathlib import Path

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]
ORDER = LeaseOrder("1.1", "job", 0, 1, "c", b"m", BlobRef(b"", 1), "wtns", reserved=Bytes(100))


def values_of(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values[f"partita_prover_{name}", tuple(sorted(labels.items()))]


def counted(*steps: tuple[ev.Event | None, list[fx.Effect]]) -> Values:
    """Return the metrics after steps that are a second apart."""
    metrics = ProverMetrics(Fingerprint())
    for second, (event, effects) in enumerate(steps):
        metrics.seen(event, effects, second * 10**9)
    actual = Actual(
        leases=(HeldLease("1.1", "job", 0, 1, Phase.PROVING, Bytes(5)),),
        keys=(HeldKey(b"m", KeyState.READY, Bytes(7)),),
    )
    text = metrics.expose(
        actual, total_bytes=50, measured_bytes=20, connected=True, longest_gap_ns=2 * 10**9
    )
    return values_of(text.decode())


def test_stages_are_timed_from_their_effect_to_their_answer_without_the_queues() -> None:
    values = counted(
        (None, [fx.FetchInput(ORDER), fx.LoadKey(b"m", Bytes(9))]),
        (ev.InputFetched("1.1"), []),
        (ev.KeyLoaded(b"m", Bytes(7)), []),
        (None, [fx.Synthesize(ORDER, express=False)]),
        (ev.Synthesized("1.1", b"", b""), []),
        (None, []),
        (None, [fx.Prove(ORDER)]),
        (None, []),
        (ev.DeviceDone("1.1"), []),
        (ev.Proved("1.1", b"proof", Bytes(95)), [fx.FreeLease("1.1")]),
        (ev.LeaseFreed("1.1"), []),
    )
    spent = {
        stage: value(values, "stage_seconds_sum", circuit="c", stage=stage)
        for stage in ("fetch", "synthesis", "device", "finish")
    }
    assert spent == {"fetch": 1, "synthesis": 1, "device": 2, "finish": 1}
    assert value(values, "device_busy_seconds_total") == 2
    assert value(values, "key_load_seconds_sum", circuit="c") == 2
    assert value(values, "key_loads_total", circuit="c", result="ready") == 1
    assert value(values, "peak_ratio_sum", circuit="c") == 0.95


def test_a_stage_that_fails_is_counted_by_its_kind_and_has_no_duration() -> None:
    values = counted(
        (None, [fx.Prove(ORDER), fx.LoadKey(b"k", Bytes(9))]),
        (ev.StageFailed("1.1", Failure(FailureKind.COMPUTE, "SICK")), []),
        (ev.KeyFailed(b"k", "off the curve"), []),
        (ev.StageFailed("unknown", Failure(FailureKind.COMPUTE, "SICK")), []),
        (ev.LinkUp(), []),
    )
    assert value(values, "failures_total", circuit="c", kind="compute") == 1
    assert value(values, "key_loads_total", circuit="unknown", result="failed") == 1
    assert value(values, "device_busy_seconds_total") == 1
    assert value(values, "links_total") == 1
    assert "partita_prover_stage_seconds_sum" not in {name for name, _ in values}


def test_gauges_are_what_is_held() -> None:
    values = counted()
    assert value(values, "memory_bytes", what="total") == 50
    assert value(values, "memory_bytes", what="held") == 12
    assert value(values, "memory_bytes", what="measured") == 20
    assert value(values, "leases", phase="proving") == 1
    assert value(values, "keys", state="ready") == 1
    assert value(values, "condition", condition="ready") == 1
    assert value(values, "device_longest_gap_seconds") == 2


async def get(address: str, path: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await asyncio.to_thread(ask)


async def test_a_real_prover_exposes_exactly_its_table_and_says_why_it_is_not_ready(
    tmp_path: Path,
) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    http: dict[str, Any] = {"metrics_listen": "127.0.0.1:0"}
    async with serving() as peer, prover_on(peer, tmp_path / "mine", **http):
        session = await peer.session()
        address = run_file(tmp_path / "mine")["metrics_listen"]
        assert (await get(address, "/healthz"))[0] == 200
        status, why = await get(address, "/readyz")
        assert status == 503
        assert f"no scheduler is connected: {peer.address}" in why
        session.welcome(revision=peer.add_catalogue(tmp_path / "theirs"))
        await session.until(lambda s: s.hellos and len(s.hellos[-1].offers) == 1)
        assert (await get(address, "/readyz"))[0] == 200
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        session.desire(lease_of(entry, data, job_id="a-job"))
        await outcome(session)
        _, text = await get(address, "/metrics")
        session.desire(drain=True)
        await session.until(lambda s: s.actuals[-1].condition == 2)
        status, why = await get(address, "/readyz")
        assert (status, "DRAINING" in why) == (503, True)
    values = values_of(text)
    circuit = ONE_CONSTRAINT.name
    assert value(values, "stage_seconds_count", circuit=circuit, stage="device") == 1
    assert value(values, "circuits", usable="true") == 1
    assert value(values, "link_up") == 1
    assert "a-job" not in text
    shown = set(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    table = {(spec.name, spec.kind) for spec in (BUILD_INFO, *SPECS)}
    assert {x for x in shown if not x[0].startswith("process_")} == table
