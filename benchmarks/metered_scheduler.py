"""The scheduler with a meter: says which of its threads are whose, and can profile itself.

    python -m benchmarks.metered_scheduler [--threads FILE] [--profile FILE]

The program is `partita.scheduler` as it is; configuration comes from the environment. FILE of
--threads maps the native ids of Python's threads to their names, renewed while it runs, and the
native extension's pool, a thread for each core, names its threads, so that another process can
tell the verifier's CPU time from the rest. --profile writes a cProfile of the event loop's thread
when the scheduler ends; it slows everything down, so no figure is taken then.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import sys
import threading
from pathlib import Path

from partita.groth16 import native
from partita.scheduler.__main__ import main as run_scheduler

POOL_NAME = "partita-native"
"""How the names of the native extension's threads begin."""

_PERIOD_S = 0.5


def main() -> int:
    """Run the scheduler until it ends; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=Path)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    if given.threads is not None:
        native.set_threads(len(os.sched_getaffinity(0)))
        threading.Thread(target=_write_names, args=[given.threads], daemon=True).start()
    if given.profile is None:
        return run_scheduler([])
    profile = cProfile.Profile()
    code = profile.runcall(run_scheduler, [])
    profile.dump_stats(given.profile)
    return code


def _write_names(path: Path) -> None:
    ended = threading.Event()
    temporary = path.with_suffix(".new")
    while True:
        names = {str(thread.native_id): thread.name for thread in threading.enumerate()}
        temporary.write_text(json.dumps(names))
        temporary.rename(path)
        ended.wait(_PERIOD_S)


if __name__ == "__main__":
    sys.exit(main())
