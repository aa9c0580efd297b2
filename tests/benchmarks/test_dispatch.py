"""The load tool against a real scheduler, in small."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.dispatch import CpuTimes, figures, measure, prepare
from benchmarks.processes import services_in
from partita.service.fingerprint import fingerprint


async def test_instant_provers_end_every_job_and_all_is_measured(tmp_path: Path) -> None:
    products = prepare(tmp_path)
    with services_in(tmp_path) as services:
        services.start_scheduler("--threads", str(tmp_path / "threads.json"), check_invariants=True)
        found = await measure(
            services, products, n_provers=3, rounds=1, n_partitions=40, steady_s=0.1
        )
    (flood,) = found.floods
    assert flood.per_s > 0
    assert flood.cpu_ms >= 0
    assert len(found.latency_ms) == 40
    assert min(found.latency_ms) > 0
    assert [figure.bound for figure in figures(found)] == ["≥ 800", "≤ 0.5", "≤ 20"]


def test_the_time_of_a_thread_that_nobody_knows_is_no_verification(tmp_path: Path) -> None:
    names = tmp_path / "threads.json"

    def used(name: dict[str, str]) -> CpuTimes:
        names.write_text(json.dumps(name))
        before, start_s = CpuTimes.of(os.getpid(), names), time.thread_time()
        while time.thread_time() < start_s + 0.1:
            pass
        return CpuTimes.of(os.getpid(), names).since(before)

    unknown = used({})
    assert (unknown.other_s > 0, unknown.verification_s) == (True, 0)
    assert used({str(threading.get_native_id()): "verifier-0"}).verification_s > 0


def test_a_service_of_another_build_than_the_benchmark_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = fingerprint("native")
    with services_in(tmp_path) as services:
        services.start_scheduler()
        assert "another build" not in capsys.readouterr().out
    monkeypatch.setattr(
        processes, "fingerprint", lambda _: replace(own, native_sha256=b"\xff" * 32)
    )
    with services_in(tmp_path) as services:
        services.start_scheduler()
        assert "scheduler is another build than this benchmark: native" in capsys.readouterr().out
