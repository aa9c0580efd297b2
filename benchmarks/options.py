"""The command line that every benchmark has."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    Attributes:
        quick: small sizes and few rounds.
        rounds: of each measurement.
    """

    quick: bool
    rounds: int


def options(description: str | None, *, rounds: int, quick_rounds: int = 2) -> Options:
    """Read the command line; QUICK=1 in the environment is --quick."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK") == "1")
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args()
    return Options(given.quick, given.rounds or (quick_rounds if given.quick else rounds))
