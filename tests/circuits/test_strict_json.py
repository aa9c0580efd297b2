"""JSON without surprises."""

from __future__ import annotations

import pytest

from partita.circuits.strict_json import MAX_DEPTH, load_json, require_fields
from partita.groth16.errors import FormatError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff{}", "is not UTF-8"),
        (b"{", "line 1, column 2"),
        (b"{} {}", "Extra data"),
        (b'{"a": {"b": 1, "b": 1}}', "'b': the key occurs twice"),
        (b"[1.0]", "1.0 is not a whole number"),
        (b"[1e3]", "1e3 is not a whole number"),
        (b"[NaN]", "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"[" + b"9" * 5000 + b"]", "too many digits"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "nested deeper"),
    ],
)
def test_what_is_no_plain_json_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load_json("f.json", text)


def test_numbers_are_exactly_what_the_text_says() -> None:
    assert load_json("f", "[9007199254740993, -0, 123456789012345678901234567890]") == [
        9007199254740993,
        0,
        123456789012345678901234567890,
    ]


def test_missing_and_unknown_fields_are_named() -> None:
    assert require_fields("f", {"a": 1, "c": 2}, ("a",), ("c",)) == {"a": 1, "c": 2}
    with pytest.raises(FormatError, match="missing: a, b"):
        require_fields("f", {}, ("a", "b"))
    with pytest.raises(FormatError, match="unknown fields: 'x', 'y'"):
        require_fields("f", {"x": 1, "y": 1}, ())
