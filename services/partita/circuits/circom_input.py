"""A circom input file: named signals with numbers, as JSON, turned into field elements.

A value is a whole number, a decimal or 0x string, or a boolean; a negative one means its residue
modulo r. Arrays of any depth are one signal, flattened in row order. Objects are buses, whose
fields are signals of their own with dots in their names (circom 2.2): {"p": {"x": 1}} gives
"p.x", {"p": [{"x": 1}]} gives "p[0].x". JSON numbers are taken exactly as the text says.

Which signals a circuit has is not known here: `circom` compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from partita.circuits.errors import CircuitInputError
from partita.circuits.strict_json import load_json

if TYPE_CHECKING:
    from partita.circuits.strict_json import Json

_NUMBER: Final = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]{1,128})|([0-9]{1,256}))")


@dataclass(frozen=True, slots=True)
class Signal:
    """The values given for one signal.

    Attributes:
        values: field elements in [0, r), in row order.
        shape: the lengths of the nested lists, outermost first; () for a single number.
    """

    values: list[int]
    shape: tuple[int, ...]


def read_circom_input(
    source: str, data: bytes | memoryview | str, *, modulus: int
) -> dict[str, Signal]:
    """Read an input file.

    Args:
        source: the name of the file, for errors.
        data: its text.
        modulus: r of the circuit's curve.

    Returns:
        The signals by name, buses taken apart.

    Raises:
        FormatError: not JSON, or a number with a fraction.
        CircuitInputError: no object, a value that is no number or not below the modulus in
            absolute value, a ragged array, a signal given twice.
    """
    value = load_json(source, data)
    if not isinstance(value, dict):
        raise CircuitInputError(f"{source} is not a JSON object of the circuit's inputs by name")
    signals: dict[str, Signal] = {}
    for name, member in value.items():
        _take(name, member, modulus, signals)
    return signals


def _take(name: str, value: Json, modulus: int, signals: dict[str, Signal]) -> None:
    if isinstance(value, dict):
        for field, member in value.items():
            _take(f"{name}.{field}", member, modulus, signals)
        return
    if isinstance(value, list) and _holds_buses(value):
        for index, member in enumerate(value):
            _take(f"{name}[{index}]", member, modulus, signals)
        return
    if name in signals:
        raise CircuitInputError(f"input {name} is given twice; keep one", (name,))
    values: list[int] = []
    shape = _flatten(name, value, modulus, values)
    signals[name] = Signal(values, shape)


def _holds_buses(values: list[Json]) -> bool:
    return any(
        isinstance(value, dict) or (isinstance(value, list) and _holds_buses(value))
        for value in values
    )


def _flatten(name: str, value: Json, modulus: int, values: list[int]) -> tuple[int, ...]:
    if not isinstance(value, list):
        values.append(_element(name, value, modulus))
        return ()
    inner: tuple[int, ...] | None = None
    for index, member in enumerate(value):
        shape = _flatten(f"{name}[{index}]", member, modulus, values)
        if inner is not None and shape != inner:
            raise CircuitInputError(
                f"input {name} is ragged: {name}[{index}] has {_describe(shape)}, "
                f"those before it {_describe(inner)}",
                (name,),
            )
        inner = shape
    return (len(value), *(inner or ()))


def _describe(shape: tuple[int, ...]) -> str:
    return "shape " + "".join(f"[{n}]" for n in shape) if shape else "one number"


def _element(name: str, value: Json, modulus: int) -> int:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if found is None:
            raise CircuitInputError(
                f"input {name}: {value[:40]!r} is no number; write a decimal or 0x string", (name,)
            )
        sign, hexadecimal, decimal = found.groups()
        number = int(hexadecimal, 16) if hexadecimal is not None else int(decimal)
        number = -number if sign else number
    elif isinstance(value, int):
        number = int(value)
    else:
        raise CircuitInputError(f"input {name} is null; give it a number", (name,))
    if not -modulus < number < modulus:
        raise CircuitInputError(
            f"input {name} is not below the modulus of the circuit's field; reduce it mod r",
            (name,),
        )
    return number % modulus
