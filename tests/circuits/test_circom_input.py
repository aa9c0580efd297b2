"""Input files of circom: what the values are, and what is no input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.circuits.circom_input import Signal, read_circom_input
from partita.circuits.errors import CircuitInputError
from partita.groth16.curves import curve_named
from partita.groth16.errors import FormatError

R = curve_named("bn254").r


def read(value: Any) -> dict[str, Signal]:
    return read_circom_input("in.json", json.dumps(value), modulus=R)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (7, 7),
        ("7", 7),
        ("007", 7),
        ("0x1F", 31),
        ("0Xff", 255),
        (True, 1),
        (False, 0),
        (-1, R - 1),
        ("-1", R - 1),
        ("-0x10", R - 16),
        (1 - R, 1),
        (9007199254740993, 9007199254740993),
        (str(R - 1), R - 1),
    ],
)
def test_a_value_is_the_element_it_says(value: object, number: int) -> None:
    assert read({"a": value}) == {"a": Signal([number], ())}


def test_arrays_are_flattened_in_row_order() -> None:
    assert read({"a": [[1, "2", 3], [4, 5, True]], "b": []}) == {
        "a": Signal([1, 2, 3, 4, 5, 1], (2, 3)),
        "b": Signal([], (0,)),
    }


def test_buses_become_signals_with_dots() -> None:
    found = read({"s": {"ends": [{"x": 1, "y": 2}, {"x": 3, "y": 4}], "w": [5, 6]}})
    assert {name: signal.values for name, signal in found.items()} == {
        "s.ends[0].x": [1],
        "s.ends[0].y": [2],
        "s.ends[1].x": [3],
        "s.ends[1].y": [4],
        "s.w": [5, 6],
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "in.json is not a JSON object"),
        ({"a": None}, "input a is null"),
        ({"a": "x"}, "input a: 'x' is no number"),
        ({"a": ""}, "input a: '' is no number"),
        ({"a": " 1"}, "input a: ' 1' is no number"),
        ({"a": "1e3"}, "input a: '1e3' is no number"),
        ({"a": "0b1"}, "input a: '0b1' is no number"),
        ({"a": "--1"}, "input a: '--1' is no number"),
        ({"a": "9" * 300}, "input a: '9{40}' is no number"),
        ({"a": [1, [2]]}, r"input a is ragged: a\[1\] has shape \[1\], those before it one number"),
        ({"a": [[1, 2], [3]]}, r"input a is ragged: a\[1\] has shape \[1\], .* shape \[2\]"),
        ({"a": ["1", {"x": 1}, None]}, r"input a\[2\] is null"),
        ({"a": R}, "input a is not below the modulus"),
        ({"a": -R}, "input a is not below the modulus"),
        ({"a": [1, str(R)]}, r"input a\[1\] is not below the modulus"),
        ({"a.x": 1, "a": {"x": 1}}, r"input a\.x is given twice"),
    ],
)
def test_what_is_no_input_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(CircuitInputError, match=message):
        read(value)


@pytest.mark.parametrize("text", ['{"a": 1.5}', '{"a": 1, "a": 1}', "{", '{"a": 1e2}'])
def test_what_is_no_plain_json_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        read_circom_input("in.json", text, modulus=R)
