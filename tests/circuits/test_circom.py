"""circom's witness programs: they compute what circom's own calculator does, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import wasmtime

from partita.circuits.circom import CircomSynthesizer
from partita.circuits.circom_program import CircomProgram, ProgramCache, never
from partita.circuits.circom_run import RunLimits
from partita.circuits.errors import (
    CircuitAssertError,
    CircuitInputError,
    ProgramError,
    ProgramLimitError,
    SynthesisStoppedError,
)
from partita.circuits.wtns import write_wtns
from tests.circuits.circuit_vectors import ALL, HOSTILE, CircuitVector, edge

PLENTY = RunLimits(memory_bytes=1 << 28, time_ns=60_000_000_000)
SHAPES = edge("shapes")
PROGRAMS = ProgramCache(64)


def program_of(vector: CircuitVector) -> CircomProgram:
    return PROGRAMS.get(str(vector), f"{vector}.wasm", lambda: vector.read("circuit.wasm"))


def synthesizer(vector: CircuitVector, *, sym: bool = True) -> CircomSynthesizer:
    symbols = vector.read("circuit.sym") if sym else None
    return CircomSynthesizer(program_of(vector), PLENTY, symbols)


def shapes_with(**changes: Any) -> bytes:
    values = {**json.loads(SHAPES.text("input.json")), **changes}
    return json.dumps({k: v for k, v in values.items() if v is not None}).encode()


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_witness_equals_that_of_circoms_own_calculator(vector: CircuitVector) -> None:
    program = program_of(vector)
    assert program.version == (2, 2, 3)
    assert program.curve.name == vector.facts["curve"]
    assert program.n_wires == vector.facts["wires"]
    witness = synthesizer(vector).synthesize(vector.read("input.json"))
    assert write_wtns(witness) == vector.read("witness.wtns")


def test_a_program_gives_a_fresh_witness_at_every_run() -> None:
    maker = synthesizer(edge("one-constraint"))
    found = [maker.synthesize(f'{{"left": {n}, "right": 3}}'.encode()).statement(1) for n in (5, 6)]
    assert found == [(15).to_bytes(32, "little"), (18).to_bytes(32, "little")]


def test_a_failed_run_does_not_disturb_the_next() -> None:
    vector = edge("assertion")
    maker = synthesizer(vector)
    for _ in range(3):
        with pytest.raises(CircuitAssertError):
            maker.synthesize(vector.read("young.json"))
        assert write_wtns(maker.synthesize(vector.read("input.json"))) == vector.read(
            "witness.wtns"
        )


@pytest.mark.parametrize("sym", [True, False])
def test_an_unknown_input_is_named(sym: bool) -> None:
    with pytest.raises(CircuitInputError, match="unknown inputs: rwo") as caught:
        synthesizer(SHAPES, sym=sym).synthesize(shapes_with(row=None, rwo=[1, 2, 3]))
    assert caught.value.signals == ("rwo",)
    assert ("the circuit's inputs: point.x, point.y, scalar, row" in str(caught.value)) is sym


def test_missing_inputs_are_named_with_symbols() -> None:
    with pytest.raises(CircuitInputError) as caught:
        synthesizer(SHAPES).synthesize(shapes_with(row=None, point={"x": 1}))
    assert str(caught.value) == "missing inputs: point.y, row"
    assert caught.value.signals == ("point.y", "row")


def test_missing_inputs_are_counted_without_symbols() -> None:
    with pytest.raises(CircuitInputError) as caught:
        synthesizer(SHAPES, sym=False).synthesize(b'{"row": [1, 2, 3], "scalar": 1}')
    assert str(caught.value) == "15 of 19 input values are missing; given: row, scalar"
    with pytest.raises(CircuitInputError, match="19 of 19 input values are missing; given: none"):
        synthesizer(SHAPES, sym=False).synthesize(b"{}")


@pytest.mark.parametrize(
    ("sym", "changes", "message"),
    [
        (True, {"row": [1, 2]}, r"input row has 2 values, the circuit wants \[3\]"),
        (False, {"row": [1, 2]}, "input row has 2 values, the circuit wants 3 values"),
        (False, {"scalar": [1, 2]}, "input scalar has 2 values, the circuit wants 1 values"),
        (True, {"row": []}, r"input row has 0 values, the circuit wants \[3\]"),
        (
            True,
            {"table": [[1, 2], [3, 4], [5, 6]]},
            r"input table has the shape \[3\]\[2\], the circuit wants \[2\]\[3\]",
        ),
    ],
)
def test_an_input_of_another_shape_is_named(sym: bool, changes: Any, message: str) -> None:
    with pytest.raises(CircuitInputError, match=message):
        synthesizer(SHAPES, sym=sym).synthesize(shapes_with(**changes))


def test_a_nested_input_may_be_given_flat() -> None:
    flat = synthesizer(SHAPES).synthesize(shapes_with(table=[1, 2, 3, 4, 5, 6]))
    assert write_wtns(flat) == SHAPES.read("witness.wtns")


def test_a_failing_assert_speaks_in_the_circuits_own_words() -> None:
    """The value that the circuit logged is left out: errors are shown, witnesses are secret."""
    vector = edge("assertion")
    with pytest.raises(CircuitAssertError) as caught:
        synthesizer(vector).synthesize(vector.read("young.json"))
    assert caught.value.message == (
        "age must be above 18, it is <value>; Error in template Adult_1 line: 23"
    )


def test_a_failing_constraint_names_its_template_and_those_around_it() -> None:
    vector = edge("assertion")
    with pytest.raises(CircuitAssertError) as caught:
        synthesizer(vector).synthesize(vector.read("old.json"))
    assert caught.value.message == (
        "Error in template Bits_0 line: 13; Error in template Adult_1 line: 25"
    )


def test_a_program_that_never_ends_is_ended() -> None:
    vector = edge("collatz")
    maker = CircomSynthesizer(program_of(vector), RunLimits(1 << 28, 50_000_000))
    with pytest.raises(ProgramLimitError, match=r"still running after 0\.05 s"):
        maker.synthesize(vector.read("endless.json"))
    assert write_wtns(synthesizer(vector).synthesize(vector.read("input.json"))) == vector.read(
        "witness.wtns"
    )


def test_a_run_is_stopped_when_the_caller_says_so() -> None:
    vector = edge("collatz")
    with pytest.raises(SynthesisStoppedError):
        synthesizer(vector).synthesize(vector.read("endless.json"), stop=lambda: True)


def test_one_run_is_stopped_and_the_other_goes_on() -> None:
    vector = edge("collatz")
    maker = synthesizer(vector)
    halt, going = threading.Event(), threading.Barrier(2)

    def endless(stop: Callable[[], bool]) -> object:
        going.wait(timeout=30)
        try:
            return maker.synthesize(vector.read("endless.json"), stop=stop)
        except SynthesisStoppedError as error:
            return error

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(endless, halt.is_set)
        going.wait(timeout=30)
        for _ in range(5):
            other = maker.synthesize(vector.read("input.json"))
            assert write_wtns(other) == vector.read("witness.wtns")
        assert not first.done()
        halt.set()
        assert isinstance(first.result(timeout=30), SynthesisStoppedError)


def test_the_interpreter_goes_on_while_a_program_runs() -> None:
    """Python code runs to its end although the endless program never yields."""
    vector = edge("collatz")
    counted = threading.Event()

    def count() -> None:
        for _ in range(10_000):
            pass
        counted.set()

    def stop() -> bool:
        if not counter.ident:
            counter.start()
        return counted.is_set()

    counter = threading.Thread(target=count)
    with pytest.raises(SynthesisStoppedError):
        synthesizer(vector).synthesize(vector.read("endless.json"), stop=stop)
    counter.join()


def test_many_threads_share_a_program() -> None:
    vector = edge("power-of-two")
    maker = synthesizer(vector)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: maker.synthesize(vector.read("input.json")), range(64)))
    assert {write_wtns(witness) for witness in found} == {vector.read("witness.wtns")}


def test_a_program_that_recurses_too_deep_breaks_down() -> None:
    vector = edge("recursion")
    with pytest.raises(ProgramError, match="broke down: memory out of bounds"):
        synthesizer(vector).synthesize(vector.read("deep.json"))


def test_a_program_that_grows_without_end_is_held_and_ended() -> None:
    limits = RunLimits(memory_bytes=1 << 24, time_ns=100_000_000)
    program = CircomProgram("grows.wasm", (HOSTILE / "grows.wasm").read_bytes())
    with pytest.raises(ProgramLimitError, match="had grown to its memory limit of 16777216"):
        CircomSynthesizer(program, limits).synthesize(b'{"left": 1, "right": 1}')


def test_a_program_that_starts_above_its_limit_is_refused() -> None:
    maker = CircomSynthesizer(program_of(SHAPES), RunLimits(65536, 10**9))
    with pytest.raises(ProgramLimitError, match=r"wants more memory than .* 65536 bytes"):
        maker.synthesize(SHAPES.read("input.json"))


def test_a_program_of_circom_1_is_refused_by_name() -> None:
    with pytest.raises(ProgramError, match=r"circom1\.wasm: was compiled by circom 1"):
        CircomProgram("circom1.wasm", (HOSTILE / "circom1.wasm").read_bytes())


def changed(*replacements: tuple[str, str]) -> bytes:
    """The hand-written program with some of its text replaced."""
    text = (HOSTILE / "grows.wat").read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return bytes(wasmtime.wat2wasm(text))


WIRES = '"getWitnessSize") (result i32) i32.const '
INPUTS = '"getInputSize") (result i32) i32.const '
VERSION = '"getVersion") (result i32) i32.const '
MEMORY = '(export "memory") 1)'


@pytest.mark.parametrize(
    ("replacements", "message"),
    [
        ([('"getVersion"', '"version"')], "does not export getVersion"),
        ([(VERSION + "2", VERSION + "3")], r"compiled by circom 3\.2\.3"),
        (
            [(f"(export {WIRES}4", '(export "getWitnessSize")')],
            r"exports getWitnessSize, but not as a function \(\) -> i32",
        ),
        ([(f"(memory {MEMORY}", "(memory 1)")], "exports no memory"),
        ([("i32.const 8)", "i32.const 2)")], "numbers of 2 words"),
        ([("0x30644e72", "0x30644e73")], "it must be BN254's"),
        ([(WIRES + "4", WIRES + "0")], "claims 0 wires and 2 input values"),
        ([(WIRES + "4", WIRES + "0x7fffffff")], "claims 2147483647 wires"),
        ([(INPUTS + "2", INPUTS + "-1")], "4 wires and -1 input values"),
        ([("(module", '(module (import "env" "abort" (func))')], r"imports env\.abort"),
        (
            [(MEMORY, MEMORY + " (func $s unreachable) (start $s)")],
            "broke down: unreachable",
        ),
    ],
)
def test_what_is_no_program_of_circom_2_is_refused(
    replacements: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        CircomProgram("p.wasm", changed(*replacements))


def test_a_program_that_loops_as_it_starts_is_ended() -> None:
    """A start function runs before anything can be asked of the program."""
    looping = changed((MEMORY, MEMORY + " (func $s (loop (br 0))) (start $s)"))
    with pytest.raises(ProgramLimitError, match=r"still running after 0\.05 s"):
        CircomProgram("p.wasm", looping, probe_time_ns=50_000_000)


def test_a_program_whose_wire_0_is_not_one_is_not_believed() -> None:
    """This one takes its inputs, and leaves whatever was there last as every wire."""
    lazy = changed(("(br $again)", ""))
    with pytest.raises(ProgramError, match="wire 0 is not 1"):
        CircomSynthesizer(CircomProgram("p.wasm", lazy), PLENTY).synthesize(
            b'{"left": 7, "right": 7}'
        )


@pytest.mark.parametrize("data", [b"", b"(module)", b"\0asm", b"\0asm\1\0\0\0"])
def test_what_is_no_webassembly_is_refused(data: bytes) -> None:
    with pytest.raises(ProgramError, match=r"p\.wasm"):
        CircomProgram("p.wasm", data)


def test_a_process_that_ends_with_a_program_loaded_ends_quietly() -> None:
    """Here `os` keeps it, which outlives what wasmtime's objects need to free themselves."""
    path = edge("one-constraint").path / "circuit.wasm"
    code = (
        "import os\n"
        "from pathlib import Path\n"
        "from partita.circuits.circom_program import CircomProgram\n"
        f"os.kept = CircomProgram('p.wasm', Path({str(path)!r}).read_bytes())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""


def test_a_cache_compiles_a_program_once_and_drops_the_least_used() -> None:
    reads: list[str] = []

    def reader(name: str) -> Callable[[], bytes]:
        def read() -> bytes:
            reads.append(name)
            return edge("one-constraint").read("circuit.wasm")

        return read

    cache = ProgramCache(capacity=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        cache.get(name, name, reader(name))
    assert reads == ["a", "b", "c", "b"]
    assert never() is False
