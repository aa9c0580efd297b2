"""Sizes and durations as people write them, strictly; and how much memory this machine has.

A size is an integer and a unit: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers
of 1000); "0" needs no unit. A duration is one or more of d, h, m, s, ms in falling order: "1h30m".
Anything else is an error that says what would be right: a misspelt "64G" never becomes a default.
"""

from __future__ import annotations

import re
from pathlib import Path

_SIZE_UNITS = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_DURATION_UNITS_NS = {
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
}
_SIZE = re.compile(r"(\d+)(?:\.(\d{1,3}))?\s*([A-Za-z]+)")
_DURATION_PART = re.compile(r"(\d+)(ms|[dhms])")


def parse_size(text: str) -> int:
    """Return the bytes that `text` names.

    Raises:
        ValueError: not a size; the message says what would be.
    """
    if text.strip() == "0":
        return 0
    _refuse_negative(text, "512MiB or 64GiB")
    match = _SIZE.fullmatch(text.strip())
    unit = _SIZE_UNITS.get(match[3]) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write it like 512MiB, 64GiB or 1.5GiB")
    fraction = int(match[2]) * unit // 10 ** len(match[2]) if match[2] else 0
    return int(match[1]) * unit + fraction


def format_size(size_bytes: int) -> str:
    """Return `size_bytes` for people, in binary units with one decimal: "14.6 GiB"."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    unit, factor = next(
        (u, f)
        for u, f in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40))
        if size_bytes < f * 1024 or u == "TiB"
    )
    return f"{size_bytes / factor:.1f} {unit}"


def parse_duration(text: str) -> int:
    """Return the nanoseconds that `text` names.

    Raises:
        ValueError: not a duration; the message says what would be.
    """
    if text.strip() == "0":
        return 0
    _refuse_negative(text, "30s, 5m or 1h30m")
    parts = _DURATION_PART.findall(text.strip())
    units = [_DURATION_UNITS_NS[unit] for _, unit in parts]
    if (
        not parts
        or "".join(n + u for n, u in parts) != text.strip()
        or units != sorted(set(units), reverse=True)
    ):
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 5m or 1h30m")
    return sum(int(n) * _DURATION_UNITS_NS[unit] for n, unit in parts)


def _refuse_negative(text: str, example: str) -> None:
    if text.strip().startswith("-"):
        raise ValueError(f"{text!r} must not be negative; write it like {example}")


def format_duration(duration_ns: int) -> str:
    """Return `duration_ns` for people: "350ms", "12.4s", "3m05s", "2h10m"."""
    if duration_ns < 10**9:
        return f"{duration_ns / 10**6:.0f}ms"
    if duration_ns < 60 * 10**9:
        return f"{duration_ns / 10**9:.1f}s"
    minutes, seconds = divmod(duration_ns // 10**9, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def memory_limit_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how much memory this process may use: the least of MemTotal and every cgroup limit.

    Reads cgroup v2 (memory.max) and v1 (memory.limit_in_bytes) of the process's own group and of
    each ancestor, because an outer limit binds as much as the inner one.
    """
    total = next(
        int(line.split()[1]) * 1024
        for line in (proc / "meminfo").read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    limits = [total]
    for line in (proc / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        for level in (group, *group.parents):
            if not level.is_relative_to(root):
                break
            limit = level / name
            if limit.is_file() and (text := limit.read_text().strip()).isdigit():
                limits.append(int(text))
    return min(limits)
