"""Damaged files: a typed error or a read that is as good as any; never another exception.

A flipped bit may well give a file that is well-formed and means something else. What must hold is
that the reader survives, and that what it returns can be indexed without further thought.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.circuits.circom import CircomSynthesizer
from partita.circuits.circom_program import CircomProgram
from partita.circuits.circom_run import RunLimits
from partita.circuits.container import read_container
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.snarkjs_json import (
    read_proof_json,
    read_public_json,
    read_verifying_key_json,
)
from partita.circuits.wtns import read_wtns, statement_of_wtns
from partita.circuits.zkey import read_zkey
from partita.groth16.errors import FormatError, InputError
from partita.groth16.key_checks import check_matrix, check_shape
from tests.circuits.circuit_vectors import edge, patched

both_curves = pytest.mark.parametrize("curve", ["bn254", "bls12-381"])


def read_key(data: bytes) -> None:
    check_shape(read_zkey("f", data))


def read_witness(data: bytes) -> None:
    witness = read_wtns("f", data)
    statement_of_wtns("f", data, curve=witness.curve, n_wires=witness.n_wires, n_public=1)


def read_system(data: bytes) -> None:
    r1cs = read_r1cs("f", data)
    for matrix in (r1cs.matrix_a, r1cs.matrix_b, r1cs.matrix_c):
        check_matrix(matrix, r1cs.n_wires, len(r1cs.dictionary) // 32, "f", "matrix")
        assert matrix.n_rows == r1cs.n_rows


READERS = {
    "circuit.zkey": read_key,
    "witness.wtns": read_witness,
    "circuit.r1cs": read_system,
}
files = pytest.mark.parametrize("name", list(READERS))


def boundaries(data: bytes) -> Iterator[int]:
    """Where sections begin and end, and one byte to either side."""
    container = read_container(
        "f", data, magic=data[:4], version=int.from_bytes(data[4:8], "little"), names={}
    )
    for section_type in range(64):
        if container.has(section_type):
            section = container.section(section_type)
            end = section.offset + len(section.data)
            yield from (section.offset - 12, section.offset - 1, section.offset)
            yield from (section.offset + 1, end - 1, end)


@both_curves
@files
def test_a_file_cut_off_anywhere_is_refused(name: str, curve: str) -> None:
    data = edge("one-constraint", curve).read(name)
    sampled = random.Random(name).sample(range(len(data)), min(100, len(data)))
    for length in {*boundaries(data), *sampled} - {len(data)}:
        with pytest.raises(FormatError):
            READERS[name](data[:length])


@both_curves
@files
@pytest.mark.parametrize("tail", [b"\0", b"\0" * 12, b"zkey", b"\xff" * 100])
def test_a_file_with_bytes_behind_it_is_refused(name: str, curve: str, tail: bytes) -> None:
    data = edge("one-constraint", curve).read(name)
    with pytest.raises(FormatError, match="too many behind the last section"):
        READERS[name](data + tail)


def survives(read: Callable[[bytes], object], data: bytes) -> bool:
    """Whether the bytes were read; an error that is not the input's fails the test."""
    try:
        read(data)
    except InputError:
        return False
    return True


@both_curves
@files
def test_flipped_bits_are_survived(name: str, curve: str) -> None:
    data = edge("one-constraint", curve).read(name)
    rng = random.Random(f"{name} {curve}")
    for _ in range(60):
        at = rng.randrange(len(data))
        survives(READERS[name], patched(data, at, bytes([data[at] ^ 1 << rng.randrange(8)])))


@files
def test_every_byte_of_the_heads_may_be_wrong(name: str) -> None:
    """Headers hold the counts: their bytes are set to the values that make the worst of them."""
    data = edge("one-constraint").read(name)
    starts = {at for at in boundaries(data) if at < len(data)}
    head = {at + i for at in starts for i in range(12) if at + i < len(data)} | set(range(100))
    changes = [(at, value) for at in sorted(head) for value in (0, 1, 0x7F, 0xFF)]
    for at, value in random.Random(name).sample(changes, min(200, len(changes))):
        survives(READERS[name], patched(data, at, bytes([value])))


@files
@settings(max_examples=60, deadline=None)
@given(noise=st.data())
def test_noise_in_a_file_is_survived(name: str, noise: st.DataObject) -> None:
    data = edge("shapes").read(name)
    at = noise.draw(st.integers(0, len(data) - 1))
    survives(READERS[name], patched(data, at, noise.draw(st.binary(min_size=1, max_size=64))))


def run_program(data: bytes) -> None:
    program = CircomProgram("p.wasm", data, probe_time_ns=100_000_000)
    maker = CircomSynthesizer(program, RunLimits(1 << 24, 100_000_000))
    maker.synthesize(edge("one-constraint").read("input.json"))


def test_a_program_cut_off_anywhere_is_refused() -> None:
    data = edge("one-constraint").read("circuit.wasm")
    for length in [0, 3, 4, 7, 8, *random.Random(1).sample(range(len(data)), 40)]:
        assert not survives(run_program, data[:length])


def test_a_program_with_bytes_behind_it_is_refused() -> None:
    data = edge("one-constraint").read("circuit.wasm")
    for tail in (b"\xff", b"\xff" * 100, data):
        assert not survives(run_program, data + tail)


def test_flipped_bits_in_a_program_are_survived() -> None:
    data = edge("one-constraint").read("circuit.wasm")
    rng = random.Random(3)
    outcomes = set()
    for _ in range(50):
        at = rng.randrange(len(data))
        flipped = patched(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))
        outcomes.add(survives(run_program, flipped))
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", ["proof.json", "public.json", "verification_key.json"])
@settings(max_examples=60, deadline=None)
@given(noise=st.data())
def test_noise_in_json_is_survived(name: str, noise: st.DataObject) -> None:
    readers: dict[str, Callable[[bytes], object]] = {
        "proof.json": lambda data: read_proof_json("f", data),
        "public.json": lambda data: read_public_json("f", data, curve_name="bn254"),
        "verification_key.json": lambda data: read_verifying_key_json("f", data),
    }
    data = edge("one-constraint").read(name)
    at = noise.draw(st.integers(0, len(data) - 1))
    survives(readers[name], patched(data, at, noise.draw(st.binary(min_size=1, max_size=8))))
    survives(readers[name], data[:at])
