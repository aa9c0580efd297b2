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
from benchmarks.metered_scheduler import POOL_NAME
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


def burn() -> None:
    """Use a tenth of a second of this thread's CPU."""
    start_s = time.thread_time()
    while time.thread_time() < start_s + 0.1:
        pass


@pytest.mark.parametrize(("python", "own"), [("verifier-0", ""), ("", f"{POOL_NAME}-0"), ("", "")])
def test_only_the_verifier_and_the_native_pool_count_as_verification(
    tmp_path: Path, python: str, own: str
) -> None:
    names = tmp_path / "threads.json"
    burnt, leave = threading.Event(), threading.Event()

    def work() -> None:
        me = threading.get_native_id()
        names.write_text(json.dumps({str(me): python} if python else {}))
        if own:
            Path(f"/proc/self/task/{me}/comm").write_text(own)
        burn()
        burnt.set()
        leave.wait()

    names.write_text("{}")
    before, thread = CpuTimes.of(os.getpid(), names), threading.Thread(target=work)
    thread.start()
    burnt.wait()
    used = CpuTimes.of(os.getpid(), names).since(before)
    leave.set()
    thread.join()
    assert (used.verification_s > 0.05) is bool(python or own)
    assert (used.other_s > 0.05) is not bool(python or own)


def test_the_time_of_a_thread_that_has_ended_is_not_lost(tmp_path: Path) -> None:
    names = tmp_path / "threads.json"
    names.write_text("{}")
    before, thread = CpuTimes.of(os.getpid(), names), threading.Thread(target=burn)
    thread.start()
    thread.join()
    assert CpuTimes.of(os.getpid(), names).since(before).other_s > 0.05


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
