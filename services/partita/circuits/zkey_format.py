"""The outer form of snarkjs' .zkey files (version 1): what marks them, and their sections.

Not here: what the sections hold; see `zkey`.

Format: snarkjs, `src/zkey_utils.js`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

MAGIC: Final = b"zkey"
VERSION: Final = 1
GROTH16: Final = 1


class SectionType(IntEnum):
    """The numbers of the sections of a Groth16 key."""

    PROTOCOL = 1
    HEADER = 2
    IC = 3
    COEFFICIENTS = 4
    A = 5
    B1 = 6
    B2 = 7
    C = 8
    H = 9
    CONTRIBUTIONS = 10


SECTION_NAMES: Final[dict[int, str]] = {
    SectionType.PROTOCOL: "protocol",
    SectionType.HEADER: "Groth16 header",
    SectionType.IC: "IC",
    SectionType.COEFFICIENTS: "coefficients",
    SectionType.A: "A query",
    SectionType.B1: "B1 query",
    SectionType.B2: "B2 query",
    SectionType.C: "C query",
    SectionType.H: "H query",
    SectionType.CONTRIBUTIONS: "contributions",
}
CIRCUIT_HASH_BYTES: Final = 64
