"""The benchmarks' circuit: satisfied, read back from its file, proved under a key of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.circuit import N_PUBLIC, Mixed, write_r1cs
from partita.circuits.r1cs_file import read_r1cs
from partita.groth16.curves import CURVES
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey


@pytest.fixture(params=CURVES)
def circuit(request: pytest.FixtureRequest) -> Mixed:
    return Mixed.of_domain(request.param, 6)


def test_the_witness_of_a_seed_satisfies_every_row(circuit: Mixed) -> None:
    system = circuit.system()
    assert system.n_rows == 52
    assert NativeBackend().check_rows(system, circuit.witness(1)) is None
    assert circuit.witness(1).values != circuit.witness(2).values
    assert circuit.witness(1).statement(N_PUBLIC) != circuit.witness(2).statement(N_PUBLIC)


def test_half_of_the_rows_are_bits_that_take_both_values(circuit: Mixed) -> None:
    values = np.frombuffer(circuit.witness(1).values, dtype=np.uint8).reshape(-1, 32)
    bits = values[3 : 3 + circuit.n_bits]
    assert circuit.n_bits == 26
    assert set(bits[:, 0]) == {0, 1}
    assert not bits[:, 1:].any()


def test_the_file_says_what_the_system_says(circuit: Mixed, tmp_path: Path) -> None:
    path = tmp_path / "mixed.r1cs"
    write_r1cs(path, circuit.system())
    read = read_r1cs(str(path), path.read_bytes())
    assert (read.n_wires, read.n_public, read.n_rows) == (circuit.n_wires, N_PUBLIC, 52)
    assert NativeBackend().check_rows(read, circuit.witness(3)) is None


def test_a_proof_of_it_verifies_and_the_domain_is_full(circuit: Mixed) -> None:
    key = set_up(circuit.system(), KeyFamily.SNARKJS, ToxicWaste.random(circuit.curve))
    assert key.domain_size == 64
    backend, witness = NativeBackend(), circuit.witness(4)
    proof = prove(backend, backend.load(key, check=False), witness).to_bytes()
    verifier = Verifier(VerifyingKey.of_proving_key(key))
    assert verifier.verify(witness.statement(N_PUBLIC), proof)
    assert not verifier.verify(circuit.witness(5).statement(N_PUBLIC), proof)
