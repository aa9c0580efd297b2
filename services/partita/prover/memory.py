"""What this process occupies, as the kernel counts it, and how much it may.

The peak mark belongs to the whole process: while one lease is on the device, what others do at
the same time is in it too.
"""

from __future__ import annotations

import ctypes
import resource
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK_BYTES = 1 << 20


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return _field("VmRSS:")


def peak_bytes() -> int:
    """Return the most resident memory since `reset_peak`, or since the process began."""
    return _field("VmHWM:")


def reset_peak() -> None:
    """Let the peak start from what is resident now, where the kernel allows it."""
    with suppress(OSError):
        _CLEAR_REFS.write_text(_RESET_PEAK)


def limit_data_bytes(limit_bytes: int) -> None:
    """Let the kernel refuse private memory beyond a limit: a refusal instead of an OOM kill."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit_bytes = min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, hard))


def return_freed_blocks() -> None:
    """Let the C library give large blocks back to the kernel when they are freed.

    Otherwise each of its arenas keeps what native sums have used, up to 32 MiB a block, and the
    process occupies more than its keys and leases are charged. See mallopt(3): a threshold that is
    set no longer rises by itself. A C library without it keeps its own ways.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def _field(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0
