"""The watchdog: a stall ends the process, progress does not."""

from __future__ import annotations

import faulthandler
import itertools
import subprocess
import sys
import threading

import pytest

from partita.prover.watchdog import Watchdog, stall_limit_ns

SECOND = 10**9

HANG = """
import ctypes
from partita.prover.watchdog import Watchdog

with Watchdog(lambda: 0, floor_ns=200_000_000, poll_s=0.01).watching(0):
    {hang}
"""


@pytest.mark.parametrize(
    "hang",
    [
        "import time; time.sleep(60)",
        "ctypes.PyDLL(None).sleep(60)",  # holds the interpreter lock
    ],
)
def test_a_stall_ends_the_process_with_all_stacks(hang: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANG.format(hang=hang)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "<module>" in ended.stderr


def test_progress_of_either_counter_pushes_the_timer_back(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[float] = []
    enough = threading.Event()

    def arm(limit_s: float, *, exit: bool) -> None:  # noqa: A002  (the name of the original)
        assert exit
        armed.append(limit_s)
        if len(armed) > 3:
            enough.set()

    monkeypatch.setattr(faulthandler, "dump_traceback_later", arm)
    counter = itertools.count()
    with Watchdog(lambda: next(counter), poll_s=0.001).watching(0):
        assert enough.wait(30)
    assert min(armed) >= 60


def test_without_progress_the_timer_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[float] = []
    looked = threading.Event()
    looks = itertools.count()

    def counter() -> int:
        if next(looks) > 3:
            looked.set()
        return 0

    monkeypatch.setattr(
        faulthandler, "dump_traceback_later", lambda limit_s, **_: armed.append(limit_s)
    )
    with Watchdog(counter, poll_s=0.001).watching(0):
        assert looked.wait(30)
    assert len(armed) == 1


def test_the_limit_is_the_greatest_of_floor_longest_and_expected() -> None:
    assert stall_limit_ns(60 * SECOND, 0, 0) == 60 * SECOND
    assert stall_limit_ns(60 * SECOND, 4 * SECOND, 0) == 80 * SECOND
    assert stall_limit_ns(60 * SECOND, 4 * SECOND, 100 * SECOND) == 300 * SECOND
