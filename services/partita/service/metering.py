"""Metrics from one table: a program's metrics are declared as `Spec`s, nowhere else.

The table is what the registry is built from and what docs/metrics.md is written from, so neither
can show a metric that the other lacks. No label ever holds the id of a job, a lease or a request:
their number has no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from partita.service.fingerprint import Fingerprint

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Buckets of what should take milliseconds."""

SLOW_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Buckets of stages of a proof and of whole jobs."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric.

    Attributes:
        name: with its unit last; a counter's ends in `_total`.
        kind: its type.
        meaning: one sentence.
        labels: names of its labels.
        buckets: upper bounds, of a histogram only.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


BUILD_INFO = Spec(
    "partita_build_info",
    "gauge",
    "Always 1; the labels say which build runs.",
    ("version", "commit", "code", "native", "backend"),
)


class Meter:
    """The metrics of one process.

    Args:
        specs: its table, without BUILD_INFO.
        build: what runs.
    """

    def __init__(self, specs: Iterable[Spec], build: Fingerprint) -> None:
        disable_created_metrics()
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._totals: dict[str, float] = {}
        self._counted: dict[tuple[str, ...], Counter] = {}
        self._observed: dict[tuple[str, ...], Histogram] = {}
        """Series that were used, by name and labels: finding one in its metric costs more."""
        for spec in (BUILD_INFO, *specs):
            self._add(spec)
        ProcessCollector(registry=self._registry)
        self.set(
            BUILD_INFO.name,
            1,
            build.version,
            build.commit,
            build.code_sha256.hex(),
            build.native_sha256.hex(),
            build.backend,
        )

    def _add(self, spec: Spec) -> None:
        arguments = (spec.name, spec.meaning, spec.labels)
        if spec.kind == "counter":
            self._counters[spec.name] = Counter(*arguments, registry=self._registry)
        elif spec.kind == "gauge":
            self._gauges[spec.name] = Gauge(*arguments, registry=self._registry)
        else:
            self._histograms[spec.name] = Histogram(
                *arguments, buckets=spec.buckets, registry=self._registry
            )

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        series = self._counted.get((name, *labels))
        if series is None:
            counter = self._counters[name]
            series = self._counted[name, *labels] = counter.labels(*labels) if labels else counter
        series.inc(by)

    def advance(self, name: str, total: float) -> None:
        """Bring a counter without labels to a total that somebody else keeps."""
        self.count(name, by=total - self._totals.get(name, 0))
        self._totals[name] = total

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(*labels) if labels else gauge).set(value)

    def replace(self, name: str, series: Iterable[tuple[Sequence[str], float]]) -> None:
        """Set every series of a gauge with labels; others of it are gone."""
        gauge = self._gauges[name]
        gauge.clear()
        for labels, value in series:
            gauge.labels(*labels).set(value)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        series = self._observed.get((name, *labels))
        if series is None:
            whole = self._histograms[name]
            series = self._observed[name, *labels] = whole.labels(*labels) if labels else whole
        series.observe(value)

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
