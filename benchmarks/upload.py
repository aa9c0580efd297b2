"""Upload of a large blob through the client: the scheduler's extra memory, and MiB a second.

The extra memory is the highest resident size of the scheduler during the upload less its resident
size before, as /proc tells it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.options import options
from benchmarks.processes import Services, forget_peak, services_in, status_bytes
from benchmarks.report import Figure, Report
from partita_client import Client

BOUND = 0.5
_MIB = 1 << 20
_SIZE_MIB = 200
_QUICK_MIB = 50


def main() -> None:
    """Upload new blobs and watch the scheduler."""
    given = options(__doc__, rounds=3)
    size_bytes = (_QUICK_MIB if given.quick else _SIZE_MIB) * _MIB
    seconds: list[float] = []
    extra: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="partita-bench-") as folder,
        services_in(Path(folder)) as services,
        _client(services) as client,
    ):
        # What is loaded at the first use is there before the first round.
        client.upload(os.urandom(_MIB))
        for _ in range(given.rounds):
            data = os.urandom(size_bytes)
            forget_peak(services.scheduler_pid)
            before = status_bytes(services.scheduler_pid, "VmRSS")
            start = time.perf_counter()
            client.upload(data)
            seconds.append(time.perf_counter() - start)
            peak = status_bytes(services.scheduler_pid, "VmHWM")
            extra.append((peak - before) / size_bytes)
    megabytes = [size_bytes / _MIB / value for value in seconds]
    size = f"{size_bytes // _MIB} MiB"
    figures = [
        Figure(
            f"{size}, scheduler's extra memory ÷ size",
            max(extra),
            high=BOUND,
            rounds={"extra ÷ size": extra},
            rounds_unit="",
            note="the largest of the rounds is judged",
        ),
        Figure(
            f"{size}, throughput, digests and fsync included",
            statistics.median(megabytes),
            "MiB/s",
            rounds={"upload": megabytes},
            rounds_unit="MiB/s",
        ),
    ]
    Report(
        "upload",
        "Upload",
        "Random blobs from memory through the blocking client to a scheduler process on loopback.",
        figures,
        given.quick,
    ).save()


def _client(services: Services) -> Client:
    services.start_scheduler()
    return Client(services.address)


if __name__ == "__main__":
    main()
