"""JSON read without surprises: one value, no duplicate keys, no fractions, bounded in depth.

Numbers are the exact integers that the text says, whatever their size up to Python's limit of
digits; a text that a JavaScript program wrote may have lost digits above 2^53 before it came
here, which nobody can see any more: such values belong in strings.
"""

from __future__ import annotations

import json
from typing import Final

from partita.groth16.errors import FormatError

Json = dict[str, "Json"] | list["Json"] | str | int | bool | None
"""What this module returns: JSON without fractions."""

MAX_DEPTH: Final = 64


def load_json(source: str, data: bytes | memoryview | str) -> Json:
    """Parse a JSON text.

    Args:
        source: the name of the file, for errors.
        data: the text; bytes are UTF-8.

    Raises:
        FormatError: not UTF-8, not JSON, a key that occurs twice in one object, a number with a
            fraction or exponent, NaN or Infinity, too many digits, nested deeper than 64.
    """

    def object_of(pairs: list[tuple[str, Json]]) -> Json:
        members = dict(pairs)
        if len(members) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FormatError(source, "the key occurs twice; keep one", section=repr(twice))
        return members

    def no_fraction(text: str) -> Json:
        raise FormatError(source, f"the number {text[:40]} is not a whole number")

    def no_constant(text: str) -> Json:
        raise FormatError(source, f"{text} is not a number of JSON")

    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        value: Json = json.loads(
            text,
            object_pairs_hook=object_of,
            parse_float=no_fraction,
            parse_constant=no_constant,
        )
    except UnicodeDecodeError as error:
        raise FormatError(source, "is not UTF-8 text", offset=error.start) from None
    except json.JSONDecodeError as error:
        raise FormatError(
            source, f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise FormatError(source, f"is nested deeper than {MAX_DEPTH}") from None
    except ValueError:
        raise FormatError(source, "a number has too many digits") from None
    _check_depth(source, value)
    return value


def _check_depth(source: str, value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise FormatError(source, f"is nested deeper than {MAX_DEPTH}")


def require_fields(
    source: str, value: Json, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Json]:
    """Demand an object with exactly these fields.

    Raises:
        FormatError: no object, or the names of missing or unknown fields.
    """
    if not isinstance(value, dict):
        raise FormatError(source, "is not a JSON object")
    missing = [name for name in required if name not in value]
    if missing:
        raise FormatError(source, "missing: " + ", ".join(missing))
    unknown = [name for name in value if name not in required and name not in optional]
    if unknown:
        raise FormatError(source, "unknown fields: " + ", ".join(map(repr, unknown[:8])))
    return value
