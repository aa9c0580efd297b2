"""Signal names of a circuit from circom's .sym file: `label,wire,component,name` a line.

Only what errors need: the names and shapes of the signals of the main component, which its inputs
are among, and whether the file fits a circuit at all. A wire of -1 was optimised away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from partita.groth16.errors import FormatError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_INDEXES: Final = re.compile(r"((?:\[\d+\])+)$")


def check_symbols(source: str, data: bytes | memoryview, *, n_wires: int) -> None:
    """Check that a .sym file is well-formed and names exactly the wires of a circuit.

    Raises:
        FormatError: malformed; names the line.
        MismatchError: it is of a circuit with another number of wires.
    """
    last = max((wire for wire, _, _ in _lines(source, data)), default=0)
    if last + 1 != n_wires:
        raise MismatchError(
            "number of wires", n_wires, last + 1, f"{source} belongs to another circuit"
        )


def main_signals(source: str, data: bytes | memoryview) -> dict[str, tuple[int, ...]]:
    """The signals of the main component: inputs, outputs and intermediate ones.

    Returns:
        Shape by name (without "main."), in the order of the file; () for a single signal.

    Raises:
        FormatError: malformed; names the line.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    main: int | None = None
    for _, component, name in _lines(source, data):
        if main is None:
            main = component
        if component != main:
            break
        base = name.partition(".")[2]
        found = _INDEXES.search(base)
        indexes: tuple[int, ...] = ()
        if found is not None:
            base = base[: found.start()]
            indexes = tuple(int(i) + 1 for i in found.group(1)[1:-1].split("]["))
        known = shapes.get(base, indexes)
        shapes[base] = tuple(map(max, known, indexes))
    return shapes


def _lines(source: str, data: bytes | memoryview) -> Iterator[tuple[int, int, str]]:
    for number, line in enumerate(bytes(data).split(b"\n"), start=1):
        if not line:
            continue
        try:
            label, wire, component, name = line.decode().rstrip("\r").split(",")
            int(label)
            parsed = int(wire), int(component), name
        except ValueError:
            raise FormatError(
                source, "is not `label,wire,component,name`", section=f"line {number}"
            ) from None
        yield parsed
