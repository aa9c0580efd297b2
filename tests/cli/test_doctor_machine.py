"""What `doctor` says of machines that are made of files."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita.cli import doctor_machine as doctor
from partita.cli.doctor_machine import Machine
from partita.cli.doctor_report import Check, Status, ok, report_object, warn

GIB = 1 << 30
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max core file size        {core}                    unlimited            bytes
Max locked memory         {locked}              8388608              bytes
Max open files            {files}                20000                files
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limits(machine: Machine, core: str = "0", locked: str = "8388608", files: str = "4096") -> None:
    text = LIMITS.format(core=core, locked=locked, files=files)
    write(machine.proc / "self" / "limits", text)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A healthy machine of 16 GiB without control groups' limits."""
    made = Machine(tmp_path / "root")
    write(made.proc / "cpuinfo", "model name : Fast\nflags : fpu adx bmi2 avx2\n")
    write(made.proc / "meminfo", f"MemTotal: {16 << 20} kB\nMemAvailable: {12 << 20} kB\n")
    write(made.proc / "self" / "cgroup", "0::/app\n")
    write(made.proc / "self" / "mounts", f"/dev/sda1 / ext4 rw 0 0\nnone {tmp_path}/shm tmpfs rw\n")
    limits(made)
    return made


def status(check: Check) -> Status:
    """The verdict; whatever is not right says what to do."""
    assert bool(check.cure) == (check.status is not Status.OK), check
    return check.status


def test_memory_that_is_configured_beyond_a_cgroup_of_either_version_fails(
    machine: Machine,
) -> None:
    assert status(doctor.check_memory(machine, 8 * GIB)) is Status.OK
    write(machine.root / "sys/fs/cgroup/app/memory.max", str(4 * GIB))
    check = doctor.check_memory(machine, 8 * GIB)
    assert status(check) is Status.FAIL
    assert "4.0 GiB allowed" in check.found
    assert "[prover] memory = 8.0 GiB" in check.found
    assert "below 4.0 GiB" in check.cure
    assert status(doctor.check_memory(machine, None)) is Status.OK

    write(machine.proc / "self" / "cgroup", "4:memory:/old\n0::/\n")
    assert status(doctor.check_memory(machine, 8 * GIB)) is Status.OK
    write(machine.root / "sys/fs/cgroup/memory/old/memory.limit_in_bytes", str(5 * GIB))
    assert "5.0 GiB allowed" in doctor.check_memory(machine, 8 * GIB).found
    assert status(doctor.check_memory(machine, 8 * GIB)) is Status.FAIL


def test_memory_that_others_use_now_is_a_warning(machine: Machine) -> None:
    assert status(doctor.check_memory(machine, 14 * GIB)) is Status.WARN


@pytest.mark.parametrize(
    ("files", "verdict"),
    [("100", Status.FAIL), ("300", Status.WARN), ("1024", Status.OK), ("unlimited", Status.OK)],
)
def test_few_open_files_are_too_few(machine: Machine, files: str, verdict: Status) -> None:
    limits(machine, files=files)
    assert status(doctor.check_open_files(machine)) is verdict


def test_core_dumps_are_warned_of_because_they_hold_inputs(machine: Machine) -> None:
    assert status(doctor.check_core_dumps(machine)) is Status.OK
    limits(machine, core="unlimited")
    assert status(doctor.check_core_dumps(machine)) is Status.WARN


def test_little_locked_memory_matters_only_to_a_gpu(machine: Machine) -> None:
    assert status(doctor.check_locked_memory(machine)) is Status.OK
    write(machine.root / "dev" / "nvidia0", "")
    assert status(doctor.check_locked_memory(machine)) is Status.WARN
    limits(machine, locked="unlimited")
    assert status(doctor.check_locked_memory(machine)) is Status.OK


def test_gpus_are_found_and_a_missing_half_is_told(machine: Machine) -> None:
    none = doctor.check_gpu(machine)
    assert status(none) is Status.OK
    assert none.found == "none: the native backend is used"
    write(machine.proc / "driver" / "nvidia" / "version", "NVRM version: 575.1\n")
    assert "--gpus all" in doctor.check_gpu(machine).cure
    write(machine.root / "dev" / "nvidia0", "")
    write(machine.root / "dev" / "nvidiactl", "")
    both = doctor.check_gpu(machine)
    assert status(both) is Status.OK
    assert "nvidia0; NVRM version: 575.1" in both.found
    (machine.proc / "driver" / "nvidia" / "version").unlink()
    assert "driver" in doctor.check_gpu(machine).cure


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86_64 processor")
def test_a_processor_without_wide_multiplication_is_warned_of(machine: Machine) -> None:
    assert status(doctor.check_processor(machine)) is Status.OK
    write(machine.proc / "cpuinfo", "model name : Slow\nflags : fpu avx2\n")
    check = doctor.check_processor(machine)
    assert status(check) is Status.WARN
    assert "Slow" in check.found


def statuses(checks: list[Check]) -> list[Status]:
    return [status(check) for check in checks]


def test_a_data_directory_needs_room(machine: Machine, tmp_path: Path) -> None:
    for free_bytes, verdict in ((GIB >> 3, Status.FAIL), (GIB, Status.WARN), (9 * GIB, Status.OK)):
        checks = doctor.check_data_dir(machine, tmp_path, lambda _, free=free_bytes: free)  # type: ignore[misc]
        assert statuses(checks) == [Status.OK, verdict]
    assert list(tmp_path.iterdir()) == [machine.root]


def test_a_data_directory_that_does_not_exist_yet_is_judged_by_its_parent(
    machine: Machine, tmp_path: Path
) -> None:
    checks = doctor.check_data_dir(machine, tmp_path / "a" / "b", lambda _: 9 * GIB)
    assert statuses(checks) == [Status.OK, Status.OK]
    assert "does not exist yet" in checks[0].found
    assert not (tmp_path / "a").exists()


def test_a_data_directory_that_is_a_file_or_cannot_be_written_fails(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert statuses(doctor.check_data_dir(machine, tmp_path / "file")) == [Status.FAIL]
    # Nobody, not even root, makes files in /proc.
    assert statuses(doctor.check_data_dir(machine, Path("/proc/self"))) == [Status.FAIL]


def test_a_data_directory_that_forgets_is_warned_of(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "shm").mkdir()
    checks = doctor.check_data_dir(machine, tmp_path / "shm" / "data", lambda _: 9 * GIB)
    assert statuses(checks) == [Status.WARN, Status.OK]
    assert "tmpfs" in checks[0].found


def clock(wall: Iterator[float], monotonic: Iterator[float]) -> Check:
    return doctor.check_clock(lambda: next(wall), lambda: next(monotonic), lambda _: None)


def test_a_clock_that_is_wrong_or_steps_is_told() -> None:
    assert status(clock(iter((1.8e9, 1.8e9 + 0.05)), iter((5.0, 5.05)))) is Status.OK
    assert status(clock(iter((1.8e9, 1.8e9 + 3.0)), iter((5.0, 5.05)))) is Status.WARN
    past = clock(iter((0.0, 0.05)), iter((5.0, 5.05)))
    assert status(past) is Status.FAIL
    assert "1970-01-01" in past.found


def test_the_time_service_is_told_where_it_can_be_read() -> None:
    assert status(doctor.check_time_service(lambda: True)) is Status.OK
    assert status(doctor.check_time_service(lambda: None)) is Status.OK
    assert status(doctor.check_time_service(lambda: False)) is Status.WARN
    assert doctor.check_time_service().status in (Status.OK, Status.WARN)


def test_warnings_do_not_fail_the_report(machine: Machine) -> None:
    limits(machine, core="1")
    rows = [ok("a", "b"), warn("c", "d", "e")]
    assert report_object(rows)["ok"] is True
    assert (
        report_object([*rows, doctor.check_data_dir(machine, Path("/proc/self"))[0]])["ok"] is False
    )
    assert report_object(rows)["checks"][1] == {
        "name": "c",
        "status": "warn",
        "found": "d",
        "cure": "e",
    }


def test_this_machine_can_be_looked_at() -> None:
    checks = doctor.machine_checks(Machine(), Path(os.curdir), None)
    assert {check.name for check in checks} >= {"processor", "memory", "disk", "clock", "GPU"}
    for check in checks:
        status(check)


def test_what_cannot_be_read_is_a_row_and_the_rest_is_looked_at(
    machine: Machine, tmp_path: Path
) -> None:
    limits(machine)
    (machine.proc / "meminfo").unlink()
    rows = {check.name: check for check in doctor.machine_checks(machine, tmp_path, 1 << 30)}
    assert rows["memory"].status is Status.FAIL
    assert f"{machine.proc / 'meminfo'}: No such file" in rows["memory"].found
    assert {"processor", "GPU", "open files", "disk", "clock"} <= set(rows)
    assert rows["open files"].status is Status.OK
