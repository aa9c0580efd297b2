"""Checks of the machine: processor, memory, limits of the process, disk, clock, GPUs.

Everything is read below a root that tests replace. Nothing is changed, except that a file is made
and removed in the data directory to see whether it can be written.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partita.cli.doctor_report import Check, attempt, fail, ok, warn
from partita.service.fingerprint import processor
from partita.service.sizes import format_size, memory_limit_bytes

_LEAST_FREE_BYTES = 256 << 20
_GOOD_FREE_BYTES = 4 << 30
_LEAST_FILES = 256
_GOOD_FILES = 1024
_LEAST_LOCKED_BYTES = 64 << 20
_VOLATILE = ("tmpfs", "ramfs", "overlay")
_SANE_WALL_S = (1_735_689_600, 4_102_444_800)
"""2025 to 2100."""
_CLOCK_SAMPLE_S = 0.05
_CLOCK_TOLERANCE_S = 0.02
_UNSYNCHRONISED = 5
"""What adjtimex(2) returns for a clock that nobody keeps right: TIME_ERROR."""
_TIMEX_BYTES = 512
"""More than the kernel's struct timex takes."""


@dataclass(frozen=True)
class Machine:
    """Where the machine's files are read.

    Attributes:
        root: "/" or a folder with proc, sys and dev.
    """

    root: Path = Path("/")

    @property
    def proc(self) -> Path:
        """The process file system."""
        return self.root / "proc"

    @property
    def memory_limit_bytes(self) -> int:
        """See `memory_limit_bytes` of `partita.service.sizes`."""
        return memory_limit_bytes(self.proc, self.root / "sys" / "fs" / "cgroup")

    @property
    def gpus(self) -> list[str]:
        """Device files of NVIDIA GPUs."""
        return sorted(path.name for path in (self.root / "dev").glob("nvidia[0-9]*"))


def check_processor(machine: Machine) -> Check:
    """Look for the instructions that make big numbers fast."""
    found = processor(machine.proc)
    if found.startswith("x86_64") and not all(f" {name}" in found for name in ("adx", "bmi2")):
        return warn(
            "processor",
            f"{found}: without adx and bmi2",
            "proofs are slower here; in a virtual machine pass the host's processor through",
        )
    return ok("processor", found)


def check_memory(machine: Machine, configured_bytes: int | None) -> Check:
    """Compare what the machine and its control groups allow with what a prover may use.

    Args:
        machine: where to look.
        configured_bytes: `memory` of [prover]; None = unset, which follows the limit.
    """
    limit_bytes = machine.memory_limit_bytes
    free_bytes = _meminfo(machine.proc, "MemAvailable")
    text = f"{format_size(limit_bytes)} allowed, {format_size(free_bytes)} available now"
    if configured_bytes is None:
        return ok("memory", f"{text}; [prover] memory is unset and follows")
    text += f", [prover] memory = {format_size(configured_bytes)}"
    if configured_bytes > limit_bytes:
        cure = f"set [prover] memory below {format_size(limit_bytes)} or raise the limit"
        return fail("memory", text, f"{cure} of the machine or its cgroup")
    if configured_bytes > free_bytes:
        cure = "end what else uses the memory, or lower [prover] memory"
        return warn("memory", text, cure)
    return ok("memory", text)


def check_open_files(machine: Machine) -> Check:
    """Look at how many files, and so connections, a process may have."""
    limit = _limit(machine.proc, "Max open files")
    text = f"{_count(limit)} a process"
    cure = "raise it: `ulimit -n 65536`, or LimitNOFILE= of the systemd unit"
    if limit < _LEAST_FILES:
        return fail("open files", text, cure)
    return warn("open files", text, cure) if limit < _GOOD_FILES else ok("open files", text)


def check_locked_memory(machine: Machine) -> Check:
    """Look at how much memory may be locked; a GPU's staging buffers are."""
    limit = _limit(machine.proc, "Max locked memory")
    text = "unlimited" if math.isinf(limit) else format_size(int(limit))
    if machine.gpus and limit < _LEAST_LOCKED_BYTES:
        cure = "raise it: `ulimit -l unlimited`, or LimitMEMLOCK=infinity of the systemd unit"
        return warn("locked memory", text, cure)
    return ok("locked memory", text)


def check_core_dumps(machine: Machine) -> Check:
    """Look whether a crash would write memory, with inputs and witnesses in it, to disk."""
    limit = _limit(machine.proc, "Max core file size")
    if limit > 0:
        text = "on: a crash would write inputs and witnesses to disk"
        return warn("core dumps", text, "`ulimit -c 0`, or LimitCORE=0 of the systemd unit")
    return ok("core dumps", "off")


def check_data_dir(
    machine: Machine,
    data_dir: Path,
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> list[Check]:
    """Look whether the data directory can be written, lasts, and has room."""
    place = data_dir.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        return [fail("data directory", f"{place} is no directory", "name another: --data-dir")]
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        cure = "make it writable for this user, or name another: --data-dir"
        return [fail("data directory", f"{place} cannot be written: {error.strerror}", cure)]
    kind = _file_system(machine.proc, place)
    if kind in _VOLATILE:
        cure = "jobs do not outlive a restart of the machine or container: use a disk or a volume"
        checks = [warn("data directory", f"{data_dir} is writable, on {kind}", cure)]
    else:
        made = "" if place == data_dir.absolute() else ", does not exist yet"
        checks = [ok("data directory", f"{data_dir} is writable{made}")]
    free = free_bytes(place)
    text = f"{format_size(free)} free at {data_dir}"
    cure = "free space there; keys, inputs and the store need it"
    if free < _LEAST_FREE_BYTES:
        return [*checks, fail("disk", text, cure)]
    return [*checks, warn("disk", text, cure) if free < _GOOD_FREE_BYTES else ok("disk", text)]


def check_clock(
    wall_s: Callable[[], float] = time.time,
    monotonic_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Check:
    """Look whether the wall clock is plausible and runs as fast as the monotonic one."""
    wall_start_s, start_s = wall_s(), monotonic_s()
    sleep(_CLOCK_SAMPLE_S)
    wall_end_s, end_s = wall_s(), monotonic_s()
    if not _SANE_WALL_S[0] <= wall_end_s <= _SANE_WALL_S[1]:
        date = time.strftime("%Y-%m-%d", time.gmtime(wall_end_s))
        return fail("clock", f"it is {date} here", "set the clock; run chrony or timesyncd")
    drift_s = (wall_end_s - wall_start_s) - (end_s - start_s)
    if abs(drift_s) > _CLOCK_TOLERANCE_S:
        text = f"the wall clock moved {drift_s:+.3f} s against the monotonic one in a moment"
        return warn("clock", text, "something steps the clock: run one time service, not two")
    return ok("clock", "plausible and steady")


def check_time_service(synchronised: Callable[[], bool | None] | None = None) -> Check:
    """Look whether the kernel says that the clock is kept right."""
    state = (synchronised or _kernel_synchronised)()
    if state is None:
        return ok("time service", "cannot be read here")
    if state:
        return ok("time service", "synchronised")
    cure = "run chrony or systemd-timesyncd; deadlines and log times are only as right as the clock"
    return warn("time service", "the clock is not synchronised", cure)


def check_gpu(machine: Machine) -> Check:
    """Look for NVIDIA GPUs and their driver."""
    version = machine.proc / "driver" / "nvidia" / "version"
    gpus = machine.gpus
    if not gpus:
        if version.exists():
            cure = "in a container pass the devices: --gpus all; else see `dmesg | grep -i nvidia`"
            return warn("GPU", "the driver is loaded, but there is no device", cure)
        return ok("GPU", "none: the native backend is used")
    try:
        driver = version.read_text().splitlines()[0]
    except (OSError, IndexError):
        cure = "install the NVIDIA driver, and the container toolkit in containers"
        return warn("GPU", f"{', '.join(gpus)} without a driver", cure)
    return ok("GPU", f"{', '.join(gpus)}; {driver}; the native backend does not use them")


def machine_checks(machine: Machine, data_dir: Path, memory_bytes: int | None) -> list[Check]:
    """Return every check of this module.

    Args:
        machine: where to look.
        data_dir: of the programs.
        memory_bytes: see `check_memory`.
    """
    return [
        *attempt("processor", lambda: check_processor(machine)),
        *attempt("GPU", lambda: check_gpu(machine)),
        *attempt("memory", lambda: check_memory(machine, memory_bytes)),
        *attempt("open files", lambda: check_open_files(machine)),
        *attempt("locked memory", lambda: check_locked_memory(machine)),
        *attempt("core dumps", lambda: check_core_dumps(machine)),
        *attempt("data directory", lambda: check_data_dir(machine, data_dir)),
        *attempt("clock", check_clock),
        *attempt("time service", check_time_service),
    ]


def _meminfo(proc: Path, name: str) -> int:
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _limit(proc: Path, name: str) -> float:
    """The soft limit of that name; infinity where there is none."""
    for line in (proc / "self" / "limits").read_text().splitlines():
        if line.startswith(name):
            soft = line.removeprefix(name).split()[0]
            return math.inf if soft == "unlimited" else int(soft)
    return math.inf


def _count(limit: float) -> str:
    return "unlimited" if math.isinf(limit) else f"{limit:.0f}"


def _file_system(proc: Path, place: Path) -> str:
    """The type of the file system that holds a folder; "" if it cannot be read."""
    try:
        rows = (proc / "self" / "mounts").read_text().splitlines()
    except OSError:
        return ""
    found = ("", "")
    for row in rows:
        fields = row.split()
        mount, kind = fields[1].replace("\\040", " "), fields[2]
        if place.resolve().is_relative_to(mount) and len(mount) >= len(found[0]):
            found = (mount, kind)
    return found[1]


def _kernel_synchronised() -> bool | None:
    """Ask adjtimex(2), which changes nothing when its modes are 0; None if it is not allowed."""
    if os.uname().sysname != "Linux":
        return None
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _UNSYNCHRONISED
