"""The load tool against a real scheduler, in small."""

from __future__ import annotations

from pathlib import Path

from benchmarks.dispatch import figures, measure, prepare
from benchmarks.processes import services_in


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
