"""Sizes and durations are strict, and memory is the least of all limits."""

from pathlib import Path

import pytest

from partita.service.sizes import (
    format_duration,
    format_size,
    memory_limit_bytes,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("0", 0), ("1B", 1), ("64GiB", 64 << 30), ("1.5GiB", 3 << 29), ("200 MB", 200_000_000)],
)
def test_a_size_with_its_unit_is_understood(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["64G", "64", "-1GiB", "1e3MiB", "GiB", "", "1.5", "64gib"])
def test_a_misspelt_size_is_refused_and_shown_how_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [("0", 0), ("250ms", 250 * 10**6), ("5m", 300 * 10**9), ("1h30m", 5400 * 10**9)],
)
def test_a_duration_with_its_unit_is_understood(text: str, duration_ns: int) -> None:
    assert parse_duration(text) == duration_ns


@pytest.mark.parametrize("text", ["5", "5 minutes", "30m1h", "5m5m", "-5m", "1.5h", ""])
def test_a_misspelt_duration_is_refused_and_shown_how_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        parse_duration(text)


def test_sizes_and_durations_are_shown_in_the_unit_people_expect() -> None:
    assert [format_size(n) for n in (0, 1023, 1 << 20, 15_676_630_630)] == [
        "0 B",
        "1023 B",
        "1.0 MiB",
        "14.6 GiB",
    ]
    assert [format_duration(n * 10**6) for n in (350, 12_400, 185_000, 7_800_000)] == [
        "350ms",
        "12.4s",
        "3m05s",
        "2h10m",
    ]


def _machine(tmp_path: Path, cgroup: str) -> Path:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
    (proc / "self/cgroup").write_text(cgroup)
    return proc


def test_an_outer_cgroup_v2_limit_binds_as_much_as_the_inner_one(tmp_path: Path) -> None:
    inner = tmp_path / "cg/pod/app"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text(f"{2 << 30}\n")
    limit = memory_limit_bytes(_machine(tmp_path, "0::/pod/app\n"), tmp_path / "cg")
    assert limit == 2 << 30


def test_a_cgroup_v1_limit_binds(tmp_path: Path) -> None:
    group = tmp_path / "cg/memory/job"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(f"{3 << 30}\n")
    proc = _machine(tmp_path, "7:cpu,cpuacct:/x\n4:memory:/job\n")
    assert memory_limit_bytes(proc, tmp_path / "cg") == 3 << 30


def test_without_a_cgroup_limit_the_machine_is_the_limit(tmp_path: Path) -> None:
    assert memory_limit_bytes(_machine(tmp_path, "0::/\n"), tmp_path) == 16 << 30
