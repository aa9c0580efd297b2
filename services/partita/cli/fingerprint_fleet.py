"""The builds that run on a scheduler and its provers, compared with another build.

Only what is connected is compared: what has gone runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from partita.service.fingerprint import (
    GATE_FIELDS,
    STALE_FEATURE,
    Difference,
    Fingerprint,
    differences,
)
from partita.v1 import fleet_pb2, proving_pb2

_SHORT_DIGITS = 12
_DIGEST_DIGITS = 64


@dataclass(frozen=True)
class Running:
    """One process and its build.

    Attributes:
        process: "scheduler" or "prover ID".
        build: what it said it runs.
        stale: whether its files have changed since it started.
    """

    process: str
    build: Fingerprint
    stale: bool

    def as_object(self, here: Fingerprint) -> dict[str, Any]:
        """Return the process and its differences from `here` for `--json`."""
        return {
            "process": self.process,
            "fingerprint": self.build.as_object(),
            "stale": self.stale,
            "differences": [
                {"field": found.field, "here": found.here, "there": found.there}
                for found in differences(here, self.build)
            ],
        }


def running_builds(
    info: proving_pb2.GetServerInfoResponse, fleet: fleet_pb2.FleetSnapshot
) -> list[Running]:
    """Return the scheduler and each connected prover, in the order of their names."""
    found = [Running("scheduler", Fingerprint.of(info.fingerprint), STALE_FEATURE in info.features)]
    for view in sorted(fleet.provers, key=lambda view: view.hello.prover_id):
        if view.connected:
            hello = view.hello
            build = Fingerprint.of(hello.fingerprint)
            found.append(
                Running(f"prover {hello.prover_id}", build, STALE_FEATURE in hello.features)
            )
    return found


def difference_line(process: str, found: Difference, here: str = "here") -> str:
    """Return one difference for people: digests shortened, `here` in the reader's words."""
    mine, theirs = (_short(text) or "none" for text in (found.here, found.there))
    return f"{process}: {found.field} is {theirs}, {here} {mine}"


def stale_line(process: str) -> str:
    """Say that a process is stale."""
    return f"{process}: stale build: its files have changed since it started; start it again"


def fleet_lines(processes: Sequence[Running]) -> list[str]:
    """Return what to tell of a fleet: stale processes, provers of another build.

    Args:
        processes: the scheduler first, as `running_builds` returns them.
    """
    scheduler, *provers = processes
    lines = [stale_line(each.process) for each in processes if each.stale]
    for prover in provers:
        found = differences(scheduler.build, prover.build, GATE_FIELDS)
        lines += [difference_line(prover.process, each, "on the scheduler") for each in found]
    return lines


def _short(text: str) -> str:
    return text[:_SHORT_DIGITS] if len(text) == _DIGEST_DIGITS else text
