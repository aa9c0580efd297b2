"""Results: judged against their bounds, saved with what ran, shown on one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.report import Figure, Report, page, ratio


@pytest.mark.parametrize(
    ("low", "high", "value", "passed"),
    [
        (None, 1.2, 1.2, True),
        (None, 1.2, 1.21, False),
        (800, None, 800, True),
        (800, None, 799, False),
        (0.9, 1.0, 0.89, False),
        (0.9, 1.0, 0.95, True),
        (0.9, 1.0, 1.01, False),
        (None, None, 7, True),
    ],
)
def test_a_figure_passes_within_its_bounds(
    low: float | None, high: float | None, value: float, passed: bool
) -> None:
    assert Figure("x", value, low=low, high=high).passed is passed


def test_a_ratio_is_that_of_the_medians() -> None:
    figure = ratio("x", ("ours", [9.0, 1.0, 2.0]), ("theirs", [4.0, 4.0, 50.0]), high=1.0)
    assert figure.value == 0.5
    assert figure.as_object()["medians"] == {"ours": 2.0, "theirs": 4.0}


def test_a_saved_report_names_machine_date_and_build(tmp_path: Path) -> None:
    figure = ratio("bn254", ("ours", [1.0]), ("theirs", [2.0]), high=1.0)
    path = Report("prove", "Prove", "In turns.", [figure], False, {"peer": "1.2"}).save(tmp_path)
    saved = json.loads(path.read_text())
    assert saved["machine"]["cpus"] > 0
    assert saved["date"].startswith("20")
    assert len(saved["fingerprint"]["native_sha256"]) == 64
    assert saved["figures"][0]["passed"]


def test_the_page_shows_each_figure_and_marks_what_is_out_of_bounds(tmp_path: Path) -> None:
    good = Figure("fast", 0.5, high=1.0, rounds={"ours": [1.0, 3.0]}, note="only a note")
    bad = Figure("slow", 2.0, "ms", high=1.0)
    report = Report("prove", "Prove", "In turns.", [good, bad], True, {"peer": "1.2"})
    text = page([json.loads(report.save(tmp_path).read_text())])
    assert "| Prove: fast | 0.5 | ≤ 1 | ok |" in text
    assert "| Prove: slow | 2 ms | ≤ 1 | **out of bounds** |" in text
    assert "| fast | ours | 2 s | 1, 3 |" in text
    assert "* fast: only a note" in text
    assert "Quick sizes" in text
    assert "peer 1.2" in text
    assert report.as_object()["fingerprint"]["code_sha256"][:12] in text


def test_the_page_says_when_its_sections_come_from_different_builds(tmp_path: Path) -> None:
    report = Report("prove", "Prove", "In turns.", [Figure("x", 1.0)], False)
    one = json.loads(report.save(tmp_path).read_text())
    other = json.loads(report.save(tmp_path).read_text())
    assert "different builds" not in page([one, other])
    other["fingerprint"]["code_sha256"] = "f" * 64
    assert "different builds: Partita" in page([one, other])
    assert f"code `{'f' * 12}`" in page([one, other]).split("| figure |")[0]
