"""bellperson's files: real ones are understood, ours come back, damage is named."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from partita.circuits.bellperson import BellpersonVk, ParamsFile, read_vk, write_params
from partita.circuits.bellperson_rows import bellperson_rows
from partita.circuits.development import DEVELOPMENT_MARK
from partita.groth16.curves import BLS12_381
from partita.groth16.encodings import write_uncompressed
from partita.groth16.errors import EncodingError, FormatError, InputError, MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from tests.groth16.test_curves import off_subgroup
from tests.groth16.tiny_setup import Circuit, edge_circuits, product_circuit, set_up, to_csr

if TYPE_CHECKING:
    from partita.groth16.r1cs import R1cs

VECTORS = Path(__file__).parents[1] / "vectors" / "bellperson"
CURVE = BLS12_381.name
G1_BYTES, G2_BYTES = 96, 192
HEAD_BYTES = 3 * G1_BYTES + 3 * G2_BYTES


def unbound(circuit: Circuit) -> bool:
    """Whether a private wire is in no row, which bellperson refuses."""
    named = {wire for row in circuit.rows for matrix in row for wire in matrix}
    return not named.issuperset(range(circuit.n_public + 1, circuit.n_wires))


WRITABLE = [c for c in (product_circuit(), *edge_circuits()) if not unbound(c)]
CIRCUIT = pytest.mark.parametrize("circuit", WRITABLE, ids=lambda c: c.name)


@lru_cache
def key_of(name: str) -> ProvingKey:
    circuit = next(c for c in (product_circuit(), *edge_circuits()) if c.name == name)
    return set_up(circuit, CURVE, KeyFamily.BELLPERSON)


def product() -> tuple[bytes, R1cs]:
    """The parameter file of the product circuit and its R1CS."""
    return b"".join(write_params(key_of("product"))), product_circuit().r1cs(CURVE)


def read_all(data: bytes, r1cs: R1cs) -> ProvingKey:
    file = ParamsFile("f.params", data, r1cs)
    return replace(file.frame, queries={q: b"".join(file.chunks(q)) for q in Query})


@pytest.mark.parametrize("name", ["snap_2kib", "window_2kib"])
def test_a_published_prover_s_proof_verifies_under_its_own_vk(name: str) -> None:
    data = (VECTORS / f"{name}.vk").read_bytes()
    vk = read_vk(name, data)
    inputs = json.loads((VECTORS / f"{name}.json").read_text())
    statement = b"".join(map(bytes.fromhex, inputs))
    proof = (VECTORS / f"{name}.proof").read_bytes()
    verifier = Verifier(vk.verifying_key())
    assert verifier.verify(statement, proof)
    assert not verifier.verify(bytes([statement[0] ^ 1]) + statement[1:], proof)
    assert vk.n_public == len(inputs)
    assert vk.to_bytes() == data


@CIRCUIT
def test_a_written_key_reads_back_equal_and_its_proofs_verify(circuit: Circuit) -> None:
    key = key_of(circuit.name)
    data = b"".join(write_params(key))
    back = read_all(data, circuit.r1cs(CURVE))
    assert {q: bytes(p) for q, p in back.queries.items()} == dict(key.queries)
    assert b"".join(write_params(back)) == data
    backend = NativeBackend()
    witness = circuit.witness_of(CURVE)
    proof = prove(backend, backend.load(back, check=True), witness)
    statement = witness.statement(circuit.n_public)
    assert Verifier(VerifyingKey.of_proving_key(key)).verify(statement, proof.to_bytes())


def test_a_vk_is_the_head_of_its_params() -> None:
    data, _ = product()
    vk = read_vk("f.vk", data[: HEAD_BYTES + 4 + 2 * G1_BYTES])
    assert vk == BellpersonVk.of_proving_key(key_of("product"))
    assert vk.verifying_key() == VerifyingKey.of_proving_key(key_of("product"))


def test_wires_that_cancel_or_have_zero_coefficients_have_no_point() -> None:
    r = BLS12_381.r
    twice = ({1: 1}, {2: 1}, {3: 1})
    matrices, dictionary = to_csr(BLS12_381, [[row[side] for row in (twice,)] for side in range(3)])
    r1cs = product_circuit().r1cs(CURVE)
    values = dictionary + (r - 1).to_bytes(32, "little") + bytes(32)
    one, minus_one, zero = 0, len(dictionary) // 32, len(dictionary) // 32 + 1
    b = replace(
        matrices[1],
        row_ptr=np.array([0, 5], dtype=np.uint64),
        wire=np.array([4, 2, 3, 4, 1], dtype=np.uint32),
        coefficient=np.array([one, one, zero, minus_one, one], dtype=np.uint32),
    )
    rows = bellperson_rows(
        replace(r1cs, matrix_a=matrices[0], matrix_b=b, matrix_c=matrices[2], dictionary=values)
    )
    assert rows.in_b.tolist() == [False, True, True, False, False]
    assert rows.in_a.tolist() == [True, True, False, False, False]


def test_a_key_with_an_unbound_private_wire_cannot_be_written() -> None:
    key = key_of("points at infinity in the key")
    with pytest.raises(EncodingError, match=r"^l\[0\]: infinity"):
        list(write_params(key))


def test_keys_of_snarkjs_and_of_bn254_are_not_written() -> None:
    with pytest.raises(MismatchError, match="family of the key"):
        list(write_params(set_up(product_circuit(), CURVE, KeyFamily.SNARKJS)))
    with pytest.raises(MismatchError, match="curve"):
        list(write_params(set_up(product_circuit(), "bn254", KeyFamily.BELLPERSON)))


def test_the_r1cs_of_another_circuit_is_a_mismatch() -> None:
    data, _ = product()
    for other in edge_circuits()[1:4]:
        with pytest.raises(MismatchError, match="different circuits"):
            ParamsFile("f.params", data, other.r1cs(CURVE))
    with pytest.raises(MismatchError, match=r"curve of the \.r1cs"):
        ParamsFile("f.params", data, product_circuit().r1cs("bn254"))


def test_a_file_cut_off_anywhere_or_too_long_is_refused() -> None:
    data, r1cs = product()
    for size in [*range(0, len(data), 37), len(data) - 1]:
        with pytest.raises(FormatError, match="cut off") as caught:
            ParamsFile("f.params", data[:size], r1cs)
        assert caught.value.source == "f.params"
        assert caught.value.section
        assert caught.value.offset is not None
        assert caught.value.offset <= size
    with pytest.raises(FormatError, match="3 bytes too many") as caught:
        ParamsFile("f.params", data + b"abc", r1cs)
    assert caught.value.offset == len(data)
    with pytest.raises(FormatError, match="too many"):
        read_vk("f.vk", data)


def test_behind_the_last_point_only_the_whole_mark_of_a_development_set_up_may_stand() -> None:
    data, r1cs = product()
    marked = b"".join(write_params(key_of("product"), development=True))
    assert marked == data + DEVELOPMENT_MARK
    assert read_all(marked, r1cs).queries == read_all(data, r1cs).queries
    for at in range(len(data), len(marked)):
        flipped = bytearray(marked)
        flipped[at] ^= 1
        for spoilt in (marked[:at], bytes(flipped)):
            if spoilt == data:
                continue
            with pytest.raises(FormatError, match="too many behind the last point"):
                ParamsFile("f.params", spoilt, r1cs)
    for spoilt in (marked + b"\0", marked + DEVELOPMENT_MARK, data + b"\0" + DEVELOPMENT_MARK):
        with pytest.raises(FormatError, match="too many behind the last point"):
            ParamsFile("f.params", spoilt, r1cs)
    vk = data[: HEAD_BYTES + 4 + 2 * G1_BYTES]
    with pytest.raises(FormatError, match="too many"):
        read_vk("f.vk", vk + DEVELOPMENT_MARK)


def test_a_count_of_no_ic_is_refused() -> None:
    data, _ = product()
    with pytest.raises(FormatError, match=r"ic.*has no point"):
        read_vk("f.vk", data[:HEAD_BYTES] + bytes(4))


def test_every_sampled_flip_of_a_bit_is_refused() -> None:
    data, r1cs = product()
    for at in range(0, len(data), 61):
        spoilt = bytearray(data)
        spoilt[at] ^= 1 << (at % 8)
        with pytest.raises(InputError):
            read_all(bytes(spoilt), r1cs)


def places() -> list[tuple[str, int, str]]:
    """A point of each section of the product circuit's file: group, byte, name in errors."""
    key = key_of("product")
    found = [("g1", 0, "alpha_g1"), ("g2", 2 * G1_BYTES, "beta_g2")]
    at = HEAD_BYTES + 4
    found.append(("g1", at + G1_BYTES, "ic[1]"))
    at += len(key.ic)
    for name, query in (("h", Query.H), ("l", Query.C), ("a", Query.A), ("b_g1", Query.B1)):
        points = bytes(key.queries[query])
        pieces = [points[i : i + G1_BYTES] for i in range(0, len(points), G1_BYTES)]
        found.append(("g1", at + 4 + G1_BYTES, f"{name}[1]"))
        at += 4 + G1_BYTES * sum(map(any, pieces))
    found.append(("g2", at + 4 + G2_BYTES, "b_g2[1]"))
    return found


@pytest.mark.parametrize("place", places(), ids=lambda place: place[2])
def test_infinity_and_a_point_outside_the_subgroup_are_named_where_they_are(
    place: tuple[str, int, str],
) -> None:
    group, at, name = place
    data, r1cs = product()
    size = G1_BYTES if group == "g1" else G2_BYTES
    infinity = b"\x40" + bytes(size - 1)
    if group == "g1":
        outside = write_uncompressed(BLS12_381, BLS12_381.g1, off_subgroup(BLS12_381.g1))
    else:
        outside = write_uncompressed(BLS12_381, BLS12_381.g2, off_subgroup(BLS12_381.g2))
    for point, why in ((infinity, "infinity"), (outside, "wrong subgroup")):
        spoilt = data[:at] + point + data[at + size :]
        with pytest.raises(EncodingError, match=why) as caught:
            read_all(spoilt, r1cs)
        assert caught.value.where == f"f.params, {name}, byte {at}"
