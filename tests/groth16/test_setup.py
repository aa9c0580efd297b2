"""The native development set-up against the one over Python integers, point by point."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from partita.groth16.curves import CURVES, Curve, curve_named
from partita.groth16.errors import EncodingError, FormatError, InputError, MismatchError
from partita.groth16.key_checks import check_shape
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.r1cs import R1cs
from partita.groth16.setup import ToxicWaste, set_up
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from tests.conftest import ROOT
from tests.groth16 import tiny_setup
from tests.groth16.tiny_setup import Circuit, edge_circuits, product_circuit

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
FAMILY = pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)
CIRCUIT = pytest.mark.parametrize(
    "circuit", [product_circuit(), *edge_circuits()], ids=lambda c: c.name
)
BACKEND = NativeBackend()


def chain(curve_name: str, n_rows: int) -> tuple[R1cs, list[int]]:
    """Rows x² = next with one public wire, and a witness."""
    r = curve_named(curve_name).r
    values = [1, 3]
    for _ in range(n_rows):
        values.append(values[-1] ** 2 % r)
    wires = np.arange(1, n_rows + 1, dtype=np.uint32)
    row_ptr = np.arange(n_rows + 1, dtype=np.uint64)
    ones = np.zeros(n_rows, dtype=np.uint32)
    left = SparseMatrix(row_ptr, wires, ones)
    out = SparseMatrix(row_ptr, wires + np.uint32(1), ones)
    dictionary = (1).to_bytes(32, "little")
    return R1cs(curve_name, 0, 1, 0, n_rows + 2, left, left, out, dictionary), values


def rows_of(matrix: SparseMatrix, dictionary: bytes) -> list[dict[int, int]]:
    values = [
        int.from_bytes(dictionary[i : i + 32], "little") for i in range(0, len(dictionary), 32)
    ]
    return [
        {int(matrix.wire[k]): values[matrix.coefficient[k]] for k in range(start, end)}
        for start, end in zip(
            matrix.row_ptr[:-1].astype(int), matrix.row_ptr[1:].astype(int), strict=True
        )
    ]


def points_of(key: ProvingKey) -> dict[str, bytes]:
    names = ("alpha_g1", "beta_g1", "delta_g1", "beta_g2", "gamma_g2", "delta_g2", "ic")
    return {
        **{name: getattr(key, name) for name in names},
        **{query.value: bytes(key.queries[query]) for query in Query},
    }


@CURVE
@FAMILY
@CIRCUIT
def test_the_same_toxic_waste_gives_the_same_key_as_the_paper(
    curve: Curve, family: KeyFamily, circuit: Circuit
) -> None:
    expected = tiny_setup.set_up(circuit, curve.name, family)
    waste = ToxicWaste.from_scalars(curve.name, tiny_setup.toxic_waste(curve, family))
    key = set_up(circuit.r1cs(curve.name), family, waste)
    check_shape(key)
    assert points_of(key) == points_of(expected)
    assert (key.family, key.n_public, key.n_wires, key.domain_size) == (
        expected.family,
        expected.n_public,
        expected.n_wires,
        expected.domain_size,
    )
    for ours, theirs in (
        (key.matrix_a, expected.matrix_a),
        (key.matrix_b, expected.matrix_b),
        (key.matrix_c, expected.matrix_c),
    ):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert rows_of(ours, key.dictionary) == rows_of(theirs, expected.dictionary)


@CURVE
@FAMILY
@CIRCUIT
def test_a_proof_under_a_new_key_verifies_for_its_own_statement_only(
    curve: Curve, family: KeyFamily, circuit: Circuit
) -> None:
    key = set_up(circuit.r1cs(curve.name), family, ToxicWaste.random(curve.name))
    witness = circuit.witness_of(curve.name)
    proof = prove(BACKEND, BACKEND.load(key, check=True), witness).to_bytes()
    verifier = Verifier(VerifyingKey.of_proving_key(key))
    statement = witness.statement(circuit.n_public)
    assert verifier.verify(statement, proof)
    if circuit.n_public:
        assert not verifier.verify(statement[:-32] + (12345).to_bytes(32, "little"), proof)


@CURVE
@FAMILY
@pytest.mark.parametrize("n_rows", [61, 62, 63, 3000])
def test_every_point_of_a_larger_key_is_of_its_group_and_proofs_verify(
    curve: Curve, family: KeyFamily, n_rows: int
) -> None:
    """Around a power of two, and more points than one task adds up at once."""
    r1cs, values = chain(curve.name, n_rows)
    key = set_up(r1cs, family, ToxicWaste.from_seed(curve.name, b"seed"))
    assert key.domain_size == 1 << (n_rows + 1).bit_length()
    circuit = Circuit(1, r1cs.n_wires, [], values)
    witness = circuit.witness_of(curve.name)
    proof = prove(BACKEND, BACKEND.load(key, check=True), witness).to_bytes()
    assert Verifier(VerifyingKey.of_proving_key(key)).verify(witness.statement(1), proof)


@FAMILY
def test_a_system_without_rows_or_public_inputs_has_a_key(family: KeyFamily) -> None:
    """snarkjs' smallest domain is 2, bellperson's is 1."""
    empty = SparseMatrix(np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    r1cs = R1cs("bn254", 0, 0, 0, 1, empty, empty, empty, b"")
    key = set_up(r1cs, family, ToxicWaste.random("bn254"))
    check_shape(key)
    assert key.domain_size == (2 if family is KeyFamily.SNARKJS else 1)
    witness = Circuit(0, 1, [], [1]).witness_of("bn254")
    proof = prove(BACKEND, BACKEND.load(key, check=True), witness).to_bytes()
    assert Verifier(VerifyingKey.of_proving_key(key)).verify(b"", proof)


@CURVE
def test_a_seed_gives_one_key_and_another_seed_or_no_seed_another(curve: Curve) -> None:
    r1cs = product_circuit().r1cs(curve.name)

    def points(waste: ToxicWaste) -> dict[str, bytes]:
        return points_of(set_up(r1cs, KeyFamily.SNARKJS, waste))

    first = points(ToxicWaste.from_seed(curve.name, b"1"))
    assert points(ToxicWaste.from_seed(curve.name, b"1")) == first
    others = [
        points(ToxicWaste.from_seed(curve.name, b"2")),
        points(ToxicWaste.random(curve.name)),
        points(ToxicWaste.random(curve.name)),
    ]
    for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g1", "a", "h", "ic"):
        assert len({first[name], *(other[name] for other in others)}) == 4


def test_toxic_waste_is_used_once_and_has_no_textual_form() -> None:
    waste = ToxicWaste.from_scalars("bn254", [11111, 22222, 33333, 44444, 55555])
    assert not any(str(digit) * 5 in repr(waste) + repr(waste.native) for digit in range(1, 6))
    r1cs = product_circuit().r1cs("bn254")
    set_up(r1cs, KeyFamily.SNARKJS, waste)
    with pytest.raises(FormatError, match="used before"):
        set_up(r1cs, KeyFamily.SNARKJS, waste)


def test_toxic_waste_that_makes_no_key_is_refused() -> None:
    r1cs = product_circuit().r1cs("bn254")
    with pytest.raises(FormatError, match=r"toxic waste\[3\] is zero"):
        ToxicWaste.from_scalars("bn254", [1, 2, 3, 0, 5])
    with pytest.raises(EncodingError, match=r"toxic waste\[1\]"):
        ToxicWaste.from_scalars("bn254", [1, curve_named("bn254").r, 3, 4, 5])
    with pytest.raises(FormatError, match="tau lies in the domain"):
        set_up(r1cs, KeyFamily.SNARKJS, ToxicWaste.from_scalars("bn254", [2, 3, 4, 5, 1]))
    with pytest.raises(FormatError, match="another curve than bn254"):
        set_up(r1cs, KeyFamily.SNARKJS, ToxicWaste.random("bls12-381"))


def test_a_system_that_cannot_be_read_or_is_too_large_is_refused() -> None:
    r1cs, _ = chain("bn254", 4)
    beyond = SparseMatrix(
        r1cs.matrix_c.row_ptr, r1cs.matrix_c.wire + np.uint32(1), r1cs.matrix_c.coefficient
    )
    bad: list[tuple[R1cs, type[InputError], str]] = [
        (
            R1cs("bn254", 0, 1, 0, 6, r1cs.matrix_a, r1cs.matrix_b, beyond, r1cs.dictionary),
            FormatError,
            "wire 6, but there are 6",
        ),
        (
            R1cs("bn254", 0, 6, 0, 6, r1cs.matrix_a, r1cs.matrix_b, beyond, r1cs.dictionary),
            MismatchError,
            "number of public inputs",
        ),
    ]
    for system, error, message in bad:
        with pytest.raises(error, match=message):
            set_up(system, KeyFamily.SNARKJS, ToxicWaste.random("bn254"))
    n_public = (1 << 28) - 4
    large = R1cs(
        "bn254",
        0,
        n_public,
        0,
        1 << 29,
        r1cs.matrix_a,
        r1cs.matrix_b,
        r1cs.matrix_c,
        r1cs.dictionary,
    )
    with pytest.raises(MismatchError, match="constraints and public inputs"):
        set_up(large, KeyFamily.SNARKJS, ToxicWaste.random("bn254"))


_REFUSED = """
import resource
from partita.groth16.errors import ResourceError
from partita.groth16.keys import KeyFamily
from partita.groth16.setup import ToxicWaste, set_up
from tests.groth16.test_setup import chain

small, (large, _) = chain("bn254", 4)[0], chain("bn254", 1 << 17)
set_up(small, KeyFamily.SNARKJS, ToxicWaste.random("bn254"))  # the threads are there now
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (8 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
try:
    set_up(large, KeyFamily.SNARKJS, ToxicWaste.random("bn254"))
except ResourceError as error:
    print("refused:", error)
set_up(small, KeyFamily.SNARKJS, ToxicWaste.random("bn254"))
print("alive")
"""


def test_refused_memory_is_a_resource_error_and_the_process_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _REFUSED],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, alive = done.stdout.splitlines()
    assert re.fullmatch(r"refused: \d+ bytes of memory were refused", refused)
    assert alive == "alive"
