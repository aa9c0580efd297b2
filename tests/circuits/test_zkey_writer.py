"""Keys of the development set-up as .zkey files: our reader and snarkjs both take them."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from partita.circuits.development import is_development_key
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.snarkjs_json import (
    read_proof_json,
    read_public_json,
    write_proof_json,
    write_verifying_key_json,
)
from partita.circuits.wtns import read_wtns
from partita.circuits.zkey import read_zkey
from partita.circuits.zkey_writer import write_zkey
from partita.groth16.errors import MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from tests.circuits.circuit_vectors import SMALL, CircuitVector, edge, sections_of
from tests.circuits.test_zkey import rows_of

BACKEND = NativeBackend()


def new_key(vector: CircuitVector, family: KeyFamily = KeyFamily.SNARKJS) -> ProvingKey:
    r1cs = read_r1cs("c", vector.read("circuit.r1cs"))
    return set_up(r1cs, family, ToxicWaste.random(r1cs.curve))


def zkey_of(key: ProvingKey) -> bytes:
    file = io.BytesIO()
    write_zkey(file, key)
    return file.getvalue()


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_a_written_key_is_read_back_equal(vector: CircuitVector) -> None:
    key = new_key(vector)
    data = zkey_of(key)
    back = read_zkey("k", data)
    for name in (
        *("curve", "family", "n_public", "n_wires", "domain_size", "ic"),
        *("alpha_g1", "beta_g1", "delta_g1", "beta_g2", "gamma_g2", "delta_g2"),
    ):
        assert getattr(back, name) == getattr(key, name)
    assert all(back.queries[query] == key.queries[query] for query in Query)
    for ours, theirs in ((back.matrix_a, key.matrix_a), (back.matrix_b, key.matrix_b)):
        assert rows_of(ours, back.dictionary) == rows_of(theirs, key.dictionary)


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_the_coefficients_are_those_that_snarkjs_writes(vector: CircuitVector) -> None:
    """Section 4 holds nothing secret: the same system gives the same entries."""
    theirs = sections_of(vector.read("circuit.zkey"))
    ours = sections_of(zkey_of(new_key(vector)))
    assert ours[1] == theirs[1]
    assert {t: len(body) for t, body in ours.items() if t < 10} == {
        t: len(body) for t, body in theirs.items() if t < 10
    }
    entries = [
        sorted(body[at : at + 44] for at in range(4, len(body), 44))
        for body in (ours[4], theirs[4])
    ]
    assert entries[0] == entries[1]


def test_a_written_key_says_that_it_is_insecure_and_a_ceremonys_does_not() -> None:
    vector = edge("one-constraint")
    data = zkey_of(new_key(vector))
    assert is_development_key("zkey", "k", data)
    assert b"INSECURE" in sections_of(data)[10]
    assert not is_development_key("zkey", "k", vector.read("circuit.zkey"))


def test_a_key_of_another_family_is_not_written() -> None:
    key = new_key(edge("one-constraint"), KeyFamily.BELLPERSON)
    with pytest.raises(MismatchError, match="holds no other"):
        zkey_of(key)


@pytest.mark.parametrize(
    "vector",
    [
        edge("power-of-two"),
        edge("power-of-two", "bls12-381"),
        edge("empty-rows"),
        edge("no-public", "bls12-381"),
    ],
    ids=str,
)
def test_snarkjs_takes_a_written_key(snarkjs: Path, vector: CircuitVector, tmp_path: Path) -> None:
    """It proves with it, we verify; we prove with it, it verifies; it exports our verifying key."""

    def run(*arguments: object) -> str:
        command = [str(argument) for argument in (snarkjs, *arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    key = new_key(vector)
    (tmp_path / "k.zkey").write_bytes(zkey_of(key))
    vk = VerifyingKey.of_proving_key(key)
    run("zkey", "export", "verificationkey", "k.zkey", "vk.json")
    assert (tmp_path / "vk.json").read_text() == write_verifying_key_json(vk)

    run("groth16", "prove", "k.zkey", vector.path / "witness.wtns", "proof.json", "public.json")
    theirs = read_proof_json("proof.json", (tmp_path / "proof.json").read_text())
    public = (tmp_path / "public.json").read_text()
    statement = read_public_json("public.json", public, curve_name=key.curve)
    assert Verifier(vk).verify(statement, theirs.to_bytes())

    witness = read_wtns("w", vector.read("witness.wtns"))
    ours = prove(BACKEND, BACKEND.load(key, check=False), witness)
    (tmp_path / "ours.json").write_text(write_proof_json(ours))
    assert "OK!" in run("groth16", "verify", "vk.json", "public.json", "ours.json")
