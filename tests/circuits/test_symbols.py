"""circom's .sym files."""

from __future__ import annotations

import pytest

from partita.circuits.symbols import check_symbols, main_signals
from partita.groth16.errors import FormatError, MismatchError
from tests.circuits.circuit_vectors import ALL, CircuitVector, edge


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_the_symbols_of_a_circuit_fit_it(vector: CircuitVector) -> None:
    check_symbols("c.sym", vector.read("circuit.sym"), n_wires=vector.facts["wires"])
    with pytest.raises(MismatchError, match=r"c\.sym belongs to another circuit"):
        check_symbols("c.sym", vector.read("circuit.sym"), n_wires=vector.facts["wires"] + 1)


def test_the_shapes_of_the_main_components_signals_are_known() -> None:
    shapes = main_signals("c.sym", edge("shapes").read("circuit.sym"))
    assert shapes["scalar"] == ()
    assert shapes["row"] == (3,)
    assert shapes["table"] == (2, 3)
    assert shapes["point.x"] == ()
    assert shapes["segment.ends[1].y"] == ()
    assert shapes["segment.weight"] == (3,)


def test_signals_of_other_components_are_not_among_them() -> None:
    assert set(main_signals("c.sym", edge("assertion").read("circuit.sym"))) == {
        "scaled",
        "age",
        "limit",
    }


@pytest.mark.parametrize("line", [b"1,2,3", b"a,1,0,main.x", b"1,x,0,main.x", b"\xff,1,0,main.x"])
def test_a_malformed_line_is_named(line: bytes) -> None:
    with pytest.raises(FormatError, match=r"c\.sym, line 2: is not `label,wire"):
        check_symbols("c.sym", b"1,1,0,main.a\n" + line + b"\n", n_wires=2)
