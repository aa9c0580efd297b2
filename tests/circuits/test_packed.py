"""Packed keys: they equal their source, damage is found, they stay within the quota."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from partita.circuits.bellperson import write_params
from partita.circuits.errors import PackingError
from partita.circuits.key_source import KeySource, params_source, source_sha256, zkey_source
from partita.circuits.packed import PackedKey, PackedKeys
from partita.circuits.packed_format import (
    ALIGNMENT,
    HEADER_BYTES,
    PIECE_BYTES,
    ContentsDigest,
    PackedHeader,
    contents_digest,
    sections_of,
)
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.footprint import CircuitShape
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from tests.circuits.circuit_vectors import SMALL, CircuitVector, edge
from tests.groth16.tiny_setup import product_circuit, set_up
from tests.small_disk import small_disk

if TYPE_CHECKING:
    pass

EDGE = edge("one-constraint")
ZKEY = EDGE.read("circuit.zkey")


def of_zkey(data: bytes = ZKEY) -> tuple[str, KeySource]:
    return hashlib.sha256(data).hexdigest(), zkey_source("zkey", data)


def of_params() -> tuple[str, KeySource]:
    key = set_up(product_circuit(), "bls12-381", KeyFamily.BELLPERSON)
    data = b"".join(write_params(key))
    source = params_source("params", data, product_circuit().r1cs("bls12-381"))
    return hashlib.sha256(data).hexdigest(), source


@pytest.fixture
def keys(tmp_path: Path) -> PackedKeys:
    return PackedKeys(tmp_path / "packed")


def pack(keys: PackedKeys, data: bytes = ZKEY) -> Path:
    """Pack a key and end its use; where it lies."""
    name, source = of_zkey(data)
    keys.obtain(name, lambda: source).close()
    return keys.path_of(name)


def held_key(keys: PackedKeys, data: bytes) -> PackedKey:
    """Pack a key and go on using it."""
    name, source = of_zkey(data)
    return keys.obtain(name, lambda: source)


def names(keys: PackedKeys) -> set[str]:
    """The files that are there, locks left out."""
    return {p.name for p in keys.folder.iterdir() if p.suffix != ".lock"}


def assert_same(left: ProvingKey, right: ProvingKey) -> None:
    plain = ("queries", "matrix_a", "matrix_b", "matrix_c")
    for name in set(ProvingKey.__dataclass_fields__) - set(plain):
        assert getattr(left, name) == getattr(right, name), name
    assert {q: bytes(p) for q, p in left.queries.items()} == {
        q: bytes(p) for q, p in right.queries.items()
    }
    for name in plain[1:]:
        a, b = getattr(left, name), getattr(right, name)
        assert (a is None) == (b is None)
        for part in () if a is None else ("row_ptr", "wire", "coefficient"):
            assert np.array_equal(getattr(a, part), getattr(b, part)), (name, part)


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_a_packed_zkey_is_the_same_key(vector: CircuitVector, keys: PackedKeys) -> None:
    name, source = of_zkey(vector.read("circuit.zkey"))
    packed = keys.obtain(name, lambda: source)
    assert_same(packed.key(), source.whole())
    assert packed.header.shape == CircuitShape.of(source.frame)
    packed.close()
    again = keys.open(name)
    assert again is not None
    assert_same(again.key(), source.whole())
    again.close()


def test_a_packed_bellperson_key_is_the_same_key_and_proves(keys: PackedKeys) -> None:
    name, source = of_params()
    packed = keys.obtain(name, lambda: source)
    assert_same(packed.key(), source.whole())
    assert source.whole_size_bytes == sum(len(p) for p in packed.key().queries.values())
    backend, circuit = NativeBackend(), product_circuit()
    loaded = backend.load(packed.key(), check=False)
    vk = VerifyingKey.of_proving_key(packed.key())
    packed.close()
    witness = circuit.witness_of("bls12-381")
    proof = prove(backend, loaded, witness).to_bytes()
    assert Verifier(vk).verify(witness.statement(1), proof)


def test_sections_are_aligned_and_the_header_says_what_the_file_is(keys: PackedKeys) -> None:
    path = pack(keys)
    data = path.read_bytes()
    header = PackedHeader.from_bytes("pk", data[:HEADER_BYTES])
    assert path.name == f"{hashlib.sha256(ZKEY).hexdigest()}.1.pk"
    assert header.source_sha256 == hashlib.sha256(ZKEY).digest()
    assert (header.curve, header.family) == ("bn254", KeyFamily.SNARKJS)
    assert header.contents_sha256 == contents_digest(memoryview(data))
    at = HEADER_BYTES
    for name, extent in sections_of(header).items():
        assert extent.offset % ALIGNMENT == 0, name
        assert at <= extent.offset < at + ALIGNMENT
        assert not any(data[at : extent.offset])
        at = extent.end
    assert at == len(data) == header.size_bytes
    assert keys.find(hashlib.sha256(ZKEY).hexdigest()) == header
    assert keys.find("0" * 64) is None


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1])
def test_both_ways_to_the_digest_agree(size: int) -> None:
    data = bytes(HEADER_BYTES) + os.urandom(size)
    digest = ContentsDigest()
    for at in range(HEADER_BYTES, len(data), 700_001):
        digest.update(data[at : at + 700_001])
    assert digest.digest() == contents_digest(memoryview(data))


def test_every_sampled_flip_of_a_byte_is_found_and_the_file_made_again(
    keys: PackedKeys, caplog: pytest.LogCaptureFixture
) -> None:
    path = pack(keys)
    good = path.read_bytes()
    name, source = of_zkey()
    for at in [*range(0, 300, 7), 1000, *range(HEADER_BYTES, len(good), 131), len(good) - 1]:
        caplog.clear()
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        assert keys.open(name) is None, at
        assert not path.exists()
        assert "damaged" in caplog.text
        assert str(path) in caplog.text
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    keys.obtain(name, lambda: source).close()
    assert path.read_bytes() == good


@pytest.mark.parametrize("change", ["cut", "longer", "empty", "another source"])
def test_a_file_of_another_length_or_source_is_made_again(keys: PackedKeys, change: str) -> None:
    path = pack(keys)
    good = path.read_bytes()
    other = pack(keys, edge("many-public").read("circuit.zkey")).read_bytes()
    spoilt = {"cut": good[:-64], "longer": good + bytes(64), "empty": b"", "another source": other}
    path.write_bytes(spoilt[change])
    name, source = of_zkey()
    keys.obtain(name, lambda: source).close()
    assert path.read_bytes() == good


def test_a_point_off_the_curve_is_named_and_nothing_is_kept(keys: PackedKeys) -> None:
    name, source = of_zkey()
    points = bytes(source.whole().queries[Query.B2])
    at = ZKEY.index(points)
    spoilt = ZKEY[:at] + bytes([ZKEY[at] ^ 1]) + ZKEY[at + 1 :]
    with pytest.raises(EncodingError, match=r"^zkey, query b2\[0\]: off the curve"):
        keys.obtain(name, lambda: zkey_source("zkey", spoilt))
    assert names(keys) == set()


def test_a_source_of_too_few_points_makes_no_file(keys: PackedKeys) -> None:
    name, source = of_zkey()
    short = replace(source, chunks=lambda query: iter(list(source.chunks(query))[:-1]))
    with pytest.raises(FormatError, match=r"query\.a"):
        keys.obtain(name, lambda: short)
    assert names(keys) == set()


def test_two_that_pack_one_key_at_once_make_it_once(tmp_path: Path) -> None:
    name, source = of_zkey()
    both_are_there = threading.Barrier(2)
    reads: list[int] = []

    def read() -> KeySource:
        reads.append(1)
        return source

    def prover(_: int) -> bytes:
        keys = PackedKeys(tmp_path / "packed")
        both_are_there.wait(10)
        packed = keys.obtain(name, read)
        digest = packed.header.contents_sha256
        packed.close()
        return digest

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(prover, range(2))
    assert first == second
    assert reads == [1]


def test_progress_rises_to_the_size_of_the_file(keys: PackedKeys) -> None:
    name, source = of_zkey()
    seen: list[tuple[int, int]] = []
    packed = keys.obtain(name, lambda: source, lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (packed.header.size_bytes, packed.header.size_bytes)
    packed.close()


THREE = [edge(n).read("circuit.zkey") for n in ("one-constraint", "no-public", "linear-only")]


def sizes(tmp_path: Path) -> list[int]:
    keys = PackedKeys(tmp_path / "measure")
    return [pack(keys, data).stat().st_size for data in THREE]


def test_the_key_idle_for_longest_makes_room(tmp_path: Path) -> None:
    quota = sum(sizes(tmp_path)) - 1
    keys = PackedKeys(tmp_path / "packed", quota)
    first, second = pack(keys, THREE[0]), pack(keys, THREE[1])
    os.utime(second, ns=(1, 1))
    os.utime(first, ns=(2, 2))
    used = keys.open(of_zkey(THREE[1])[0])
    assert used is not None
    used.close()  # its use was later than the first's
    third = pack(keys, THREE[2])
    assert (first.exists(), second.exists(), third.exists()) == (False, True, True)


def test_a_key_in_use_is_never_removed(tmp_path: Path) -> None:
    quota = sum(sizes(tmp_path)) - 1
    keys = PackedKeys(tmp_path / "packed", quota)
    held = [held_key(keys, data) for data in THREE[:2]]
    held[0].unmap()
    with pytest.raises(PackingError, match="keys in use take") as caught:
        pack(keys, THREE[2])
    assert str(keys.folder) in str(caught.value)
    assert all(keys.path_of(p.header.source_sha256.hex()).exists() for p in held)
    held[1].close()
    pack(keys, THREE[2])
    assert keys.path_of(held[0].header.source_sha256.hex()).exists()
    assert not keys.path_of(held[1].header.source_sha256.hex()).exists()
    held[0].close()


def test_a_key_beyond_the_whole_quota_removes_nothing(tmp_path: Path) -> None:
    keys = PackedKeys(tmp_path / "packed")
    kept = pack(keys)
    small = PackedKeys(tmp_path / "packed", kept.stat().st_size)
    with pytest.raises(PackingError, match="all packed keys may take"):
        pack(small, edge("many-public").read("circuit.zkey"))
    assert kept.exists()


def test_what_a_dead_maker_left_is_removed_and_a_live_one_s_is_not(keys: PackedKeys) -> None:
    pack(keys)
    dead = keys.folder / ".dead.1.pk.new"
    dead.write_bytes(b"half")
    dead.with_suffix(".lock").touch()
    pack(keys, THREE[1])
    assert not dead.exists()
    alive = keys.folder / ".alive.1.pk.new"
    alive.write_bytes(b"half")

    with alive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pack(keys, THREE[2])
    assert alive.exists()


def test_a_full_disk_is_a_typed_error_that_names_the_path(tmp_path: Path) -> None:
    keys = PackedKeys(tmp_path / "packed")
    with small_disk(keys.folder, 8192):
        with pytest.raises(PackingError, match="No space left") as caught:
            pack(keys, edge("many-public").read("circuit.zkey"))
        assert caught.value.path.parent == keys.folder
        assert names(keys) == set()


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "packed").write_text("in the way")
    with pytest.raises(PackingError, match="packed"):
        pack(PackedKeys(tmp_path / "packed"))


def test_the_source_of_a_bellperson_key_is_both_its_files() -> None:
    params, r1cs = "11" * 32, "22" * 32
    assert source_sha256({"zkey": params}) == params
    both = {"params": params, "r1cs": r1cs}
    assert source_sha256(both) == hashlib.sha256(bytes.fromhex(params + r1cs)).hexdigest()
    assert source_sha256(both) != source_sha256({"params": r1cs, "r1cs": params})


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "partita.circuits.packed")
