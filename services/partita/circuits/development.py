"""The mark by which a key file says that a development set-up made it.

    .zkey     in the place of the circuit hash, with which the contributions begin
    .params   behind the last point, where the file of a ceremony ends; bellperson reads no further

A key of a ceremony never looks marked: no hash comes out as this text, and the last 48 bytes of a
.params file are a coordinate, which is below the modulus and the mark is not.

Nothing here reads points, and of large files only a few bytes are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from partita.circuits.container import read_container
from partita.circuits.staging import MANIFEST_NAME
from partita.circuits.zkey_format import (
    CIRCUIT_HASH_BYTES,
    MAGIC,
    SECTION_NAMES,
    VERSION,
    SectionType,
)

if TYPE_CHECKING:
    from partita.circuits.manifest import Manifest

DEVELOPMENT_MARK: Final = b"INSECURE: a development set-up made this key, no ceremony".ljust(
    CIRCUIT_HASH_BYTES, b"."
)


def is_development_key(role: str, source: str, data: bytes | memoryview) -> bool:
    """Whether a key file says that a development set-up made it; a .zkey contributed to still does.

    Args:
        role: `zkey` or `params`.
        source: the name of the file, for errors.
        data: all its bytes.

    Raises:
        FormatError: the container of a .zkey is malformed.
    """
    if role == "params":
        return bytes(data[-len(DEVELOPMENT_MARK) :]) == DEVELOPMENT_MARK
    container = read_container(source, data, magic=MAGIC, version=VERSION, names=SECTION_NAMES)
    if not container.has(SectionType.CONTRIBUTIONS):
        return False
    contributions = container.section(SectionType.CONTRIBUTIONS).data
    return bytes(contributions[:CIRCUIT_HASH_BYTES]) == DEVELOPMENT_MARK


def contradiction(manifest: Manifest, role: str, data: bytes | memoryview) -> str:
    """What a manifest says of its key's making and the key file does not; empty if they agree.

    Args:
        manifest: of the circuit.
        role: of its key file, `zkey` or `params`.
        data: all bytes of that.

    Raises:
        FormatError: the container of a .zkey is malformed.
    """
    marked = is_development_key(role, role, data)
    if marked and not manifest.insecure:
        return f"{MANIFEST_NAME} does not say insecure, but {role} is of a development set-up"
    if manifest.insecure and not marked:
        return f"{MANIFEST_NAME} says insecure, but {role} is of no development set-up"
    return ""
