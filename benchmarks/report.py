"""Results of the benchmarks: measured values, their judgement, and the page made of them.

A benchmark makes a `Report` of `Figure`s and saves it as JSON with the machine, the date and the
fingerprint of what ran. `python -m benchmarks.report` writes docs/numbers.md from the newest
result of each benchmark.

Values are compared within one run only: two programs take turns, and the figure is the ratio of
their medians, because the same machine is a different one an hour later.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from partita.service.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build" / "bench"
RESULTS = BUILD / "results"
PAGE = ROOT / "docs" / "numbers.md"

ORDER = ("prove", "service_tax", "dispatch", "upload", "warm_start", "peak", "setup_time")


@dataclass(frozen=True, slots=True)
class Figure:
    """One judged number.

    Attributes:
        name: what was measured, on what.
        value: the number that is judged.
        unit: of `value`; empty for a ratio.
        low, high: its bounds, both included; None = none on that side.
        rounds: the measured values behind it, by what was measured, in order.
        rounds_unit: of those.
        note: what the reader must know to read it right.
    """

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    rounds: dict[str, list[float]] = field(default_factory=dict)
    rounds_unit: str = "s"
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the value lies within its bounds."""
        return (self.low is None or self.value >= self.low) and (
            self.high is None or self.value <= self.high
        )

    @property
    def bound(self) -> str:
        """The bounds for people."""
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"≥ {self.low:g}"
        return f"≤ {self.high:g}" if self.high is not None else "none"

    def as_object(self) -> dict[str, Any]:
        """The figure with its medians and judgement, for JSON."""
        medians = {name: statistics.median(values) for name, values in self.rounds.items()}
        return {**asdict(self), "medians": medians, "bound": self.bound, "passed": self.passed}


def ratio(
    name: str,
    ours: tuple[str, list[float]],
    theirs: tuple[str, list[float]],
    *,
    high: float | None,
    note: str = "",
) -> Figure:
    """The figure of two programs that took turns: the ratio of the medians of (name, seconds)."""
    value = statistics.median(ours[1]) / statistics.median(theirs[1])
    return Figure(name, value, high=high, rounds=dict([ours, theirs]), note=note)


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark found.

    Attributes:
        benchmark: its module.
        title: what it is about.
        how: how it was measured, one sentence or two.
        figures: the judged numbers.
        quick: whether sizes were cut to find faults of the benchmark, not figures.
        peers: versions of other programs that ran.
    """

    benchmark: str
    title: str
    how: str
    figures: list[Figure]
    quick: bool
    peers: dict[str, str] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """The report with its surroundings, for JSON."""
        return {
            "benchmark": self.benchmark,
            "title": self.title,
            "how": self.how,
            "quick": self.quick,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "fingerprint": fingerprint("native").as_object(),
            "peers": self.peers,
            "figures": [figure.as_object() for figure in self.figures],
        }

    def save(self, folder: Path = RESULTS) -> Path:
        """Write the JSON and print a line for each figure; returns the path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.benchmark}.json"
        path.write_text(json.dumps(self.as_object(), indent=2, ensure_ascii=False) + "\n")
        for figure in self.figures:
            verdict = "ok" if figure.passed else "OUT OF BOUNDS"
            print(
                f"{self.benchmark}: {figure.name}: {_number(figure.value)} {figure.unit}"
                f" (bound {figure.bound}) {verdict}",
                flush=True,
            )
        return path


def machine() -> dict[str, Any]:
    """What the figures depend on beside the code."""
    load = os.getloadavg()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_1min": round(load[0], 2),
    }


def page(reports: list[dict[str, Any]]) -> str:
    """The page of results, as `Report.as_object` gives them."""
    lines = [
        "# Numbers",
        "",
        "Generated by `make bench` from what it measured; not edited by hand. Ratios compare",
        "programs that took turns in one run on one machine: below 1 is faster than the peer.",
        "",
        "| figure | measured | bound | |",
        "|---|---|---|---|",
    ]
    builds = {_build(report) for report in reports}
    if len(builds) > 1:
        lines[4:4] = [f"The sections come from different builds: {'; '.join(sorted(builds))}.", ""]
    for report in reports:
        for figure in report["figures"]:
            measured = f"{_number(figure['value'])} {figure['unit']}".strip()
            verdict = "ok" if figure["passed"] else "**out of bounds**"
            name = f"{report['title']}: {figure['name']}"
            lines.append(f"| {name} | {measured} | {figure['bound']} | {verdict} |")
    for report in reports:
        lines += ["", f"## {report['title']}", "", report["how"], ""]
        if report["quick"]:
            lines += ["Quick sizes: this run shows that the benchmark works, no more.", ""]
        lines += ["| | | median | rounds |", "|---|---|---|---|"]
        for figure in report["figures"]:
            for name, values in figure["rounds"].items():
                median = f"{_number(figure['medians'][name])} {figure['rounds_unit']}"
                rounds = ", ".join(_number(value) for value in values)
                lines.append(f"| {figure['name']} | {name} | {median} | {rounds} |")
        notes = [f"* {f['name']}: {f['note']}" for f in report["figures"] if f["note"]]
        lines += ["", *notes] if notes else []
        lines += ["", _surroundings(report)]
    return "\n".join(lines) + "\n"


def _surroundings(report: dict[str, Any]) -> str:
    where, device = report["machine"], report["fingerprint"]["device"]
    peers = "".join(f"; {name} {version}" for name, version in report["peers"].items())
    return (
        f"{report['date']} on {device}; {where['system']}, {where['cpus']} cpus used, "
        f"{where['memory_bytes'] / 2**30:.1f} GiB, load {where['load_1min']:g} at the end. "
        f"{_build(report)}{peers}."
    )


def _build(report: dict[str, Any]) -> str:
    build = report["fingerprint"]
    return (
        f"Partita {build['version']}, commit `{build['commit'][:12]}`, code "
        f"`{build['code_sha256'][:12]}`, native `{build['native_sha256'][:12]}`, "
        f"{build['runtime']}"
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def main() -> int:
    """Write docs/numbers.md; exit 1 if a figure is out of its bounds."""
    found = [RESULTS / f"{name}.json" for name in ORDER]
    reports = [json.loads(path.read_text()) for path in found if path.exists()]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(reports))
    print(f"{PAGE}: {len(reports)} of {len(ORDER)} benchmarks")
    failed = [f["name"] for report in reports for f in report["figures"] if not f["passed"]]
    if failed:
        print(f"out of bounds: {'; '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
