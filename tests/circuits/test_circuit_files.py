"""Circuit files by digest: found where they lie, kept only if they are what they should be."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue
from partita.circuits.circuit_files import CircuitFiles
from partita.groth16.errors import FormatError
from tests.circuits.test_catalogue import add, zkey_of

DATA = b"some file" * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


def receive(files: CircuitFiles, *chunks: bytes, size: int = len(DATA)) -> Path:
    with files.receive(SHA256, size) as receiving:
        for chunk in chunks:
            receiving.write(chunk)
        return receiving.finish()


def stored(root: Path) -> list[str]:
    return [path.name for path in (root / ".files").iterdir()]


def test_a_file_that_was_received_is_found_by_its_digest(tmp_path: Path) -> None:
    files = CircuitFiles(tmp_path)
    assert not files.has(SHA256)
    path = receive(files, DATA[:10], DATA[10:])
    assert files.path_of(SHA256) == path
    assert bytes(files.open("wasm", SHA256)) == DATA
    assert receive(files, DATA) == path
    assert stored(tmp_path) == [SHA256]
    assert CircuitFiles(tmp_path).has(SHA256)


def test_a_file_of_the_catalogue_is_found_by_its_digest(tmp_path: Path) -> None:
    files = CircuitFiles(tmp_path)
    entry = add(Catalogue(tmp_path), "a")
    digest = entry.manifest.files["zkey"]
    assert files.path_of(digest) == entry.file("zkey")
    assert bytes(files.open("zkey", digest)) == zkey_of(b"key")


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ((DATA[:-1],), "cut off: 1 bytes are missing"),
        ((DATA, b"x"), "1 bytes more than announced"),
        ((DATA[:-1] + b"x",), "the bytes received have SHA-256"),
        ((), "cut off: 9000 bytes are missing"),
    ],
)
def test_a_file_that_is_another_is_not_kept(
    tmp_path: Path, chunks: tuple[bytes, ...], message: str
) -> None:
    files = CircuitFiles(tmp_path)
    with pytest.raises(FormatError, match=message):
        receive(files, *chunks)
    assert not files.has(SHA256)
    assert stored(tmp_path) == []


def test_a_transfer_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    files = CircuitFiles(tmp_path)
    with files.receive(SHA256, len(DATA)) as receiving:
        receiving.write(DATA[:10])
    assert stored(tmp_path) == []


def test_a_file_that_was_altered_is_not_opened(tmp_path: Path) -> None:
    files = CircuitFiles(tmp_path)
    receive(files, DATA).write_bytes(b"altered")
    with pytest.raises(FormatError, match=f"was altered: expected SHA-256 {SHA256}"):
        files.open("wasm", SHA256)
    with pytest.raises(FormatError, match=r"no file with SHA-256 0{64} is on this machine"):
        files.open("wasm", "0" * 64)
