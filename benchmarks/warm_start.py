"""Warm start: loading a packed key ÷ decoding the .zkey it was made from.

Both end with a key resident in the native backend. The packed file is taken by its digest, which
also vouches for its points. The .zkey is decoded twice: with curve and subgroup of each point
checked, as a file that nobody has vouched for, and without, its own digest compared instead. Files
are in the page cache. A flipped byte in the packed file must be found.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path

from benchmarks.circuit import Mixed
from benchmarks.options import options
from benchmarks.report import Figure, Report, ratio
from partita.circuits.container import map_file
from partita.circuits.key_source import zkey_source
from partita.circuits.packed import PackedKeys
from partita.circuits.zkey import read_zkey
from partita.circuits.zkey_writer import write_zkey
from partita.groth16.curves import CURVES
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.groth16.setup import ToxicWaste, set_up

BOUND = 0.2


class Key:
    """One key as a .zkey and packed.

    Args:
        folder: for both files.
        circuit: whose key.
    """

    def __init__(self, folder: Path, circuit: Mixed) -> None:
        self._backend = NativeBackend()
        self._packed_keys = PackedKeys(folder / "packed")
        self._path = folder / "circuit.zkey"
        key = set_up(circuit.system(), KeyFamily.SNARKJS, ToxicWaste.random(circuit.curve))
        with self._path.open("wb") as file:
            write_zkey(file, key)
        self._source_sha256 = hashlib.sha256(self._path.read_bytes()).hexdigest()
        source = zkey_source(str(self._path), map_file(self._path))
        self._packed_keys.obtain(self._source_sha256, lambda: source).close()

    def load_packed(self) -> float:
        """Load the packed file; returns the seconds."""
        start = time.perf_counter()
        packed = self._packed_keys.open(self._source_sha256)
        assert packed is not None
        key = self._backend.load(packed.key(), check=False)
        seconds = time.perf_counter() - start
        key.release()
        packed.close()
        return seconds

    def decode(self, *, check: bool) -> float:
        """Load the .zkey; returns the seconds.

        Args:
            check: look at every point; otherwise compare the file's digest.
        """
        start = time.perf_counter()
        data = map_file(self._path)
        if not check:
            assert hashlib.sha256(data).hexdigest() == self._source_sha256
        key = self._backend.load(read_zkey(str(self._path), data), check=check)
        seconds = time.perf_counter() - start
        key.release()
        return seconds

    def notices_a_flipped_byte(self) -> bool:
        """Damage the packed file in its middle and try to use it."""
        path = self._packed_keys.path_of(self._source_sha256)
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 1]))
        return self._packed_keys.open(self._source_sha256) is None


def measure(curve: str, log_size: int, rounds: int) -> list[Figure]:
    """Take turns on one curve."""
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        key = Key(Path(folder), Mixed.of_domain(curve, log_size))
        key.load_packed()
        key.decode(check=False)
        triples = [
            (key.load_packed(), key.decode(check=True), key.decode(check=False))
            for _ in range(rounds)
        ]
        found = key.notices_a_flipped_byte()
    name = f"{curve}, 2^{log_size} constraints"
    packed = ("packed key", [triple[0] for triple in triples])
    return [
        ratio(
            f"{name}, ÷ .zkey with its points checked",
            packed,
            (".zkey, points checked", [triple[1] for triple in triples]),
            high=BOUND,
        ),
        ratio(
            f"{name}, ÷ .zkey with its digest compared",
            packed,
            (".zkey, digest compared", [triple[2] for triple in triples]),
            high=None,
            note="no start of a prover: a process does not know that the points passed before",
        ),
        Figure(f"{name}, flipped byte found", float(found), low=1),
    ]


def main() -> None:
    """Measure both curves."""
    given = options(__doc__, rounds=3)
    log_size = 12 if given.quick else 16
    figures = [figure for curve in CURVES for figure in measure(curve, log_size, given.rounds)]
    Report(
        "warm_start",
        "Warm start",
        "A packed key and the .zkey it was made from, both from the page cache into the native "
        "backend, in turns.",
        figures,
        given.quick,
    ).save()


if __name__ == "__main__":
    main()
