"""Catalogues and leases for tests, from the vectors that circom and snarkjs made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit
from partita.circuits.zkey import read_zkey
from partita.groth16.curves import BN254
from partita.groth16.keys import Query
from partita.groth16.native import NativeBackend
from partita.v1 import dispatch_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.circuits.catalogue import Entry

VECTORS = Path(__file__).parents[1] / "vectors" / "edge"
ONE_CONSTRAINT = VECTORS / "one-constraint-bn254"
POWER_OF_TWO = VECTORS / "power-of-two-bn254"
GIB = 1 << 30


def add(root: Path, vector: Path, *, wasm: bool = False) -> Entry:
    """Add a vector's circuit to a catalogue under its folder's name, checked as people do."""
    sources = CircuitSources(
        zkey=vector / "circuit.zkey",
        wasm=vector / "circuit.wasm" if wasm else None,
        r1cs=vector / "circuit.r1cs",
        sym=vector / "circuit.sym",
    )
    return add_circuit(Catalogue(root), vector.name, sources, NativeBackend())


def add_with_broken_point(root: Path, vector: Path) -> Entry:
    """Add a circuit whose key has a point off the curve under a digest that is right.

    Only a catalogue that was not filled by `add_circuit` can hold one.
    """

    def broken(zkey: bytes) -> bytes:
        at = zkey.index(bytes(read_zkey("zkey", zkey).queries[Query.A]))
        return zkey[:at] + bytes([zkey[at] ^ 1]) + zkey[at + 1 :]

    return _add_changed(root, vector, broken)


def add_with_another_b2_point(root: Path, vector: Path) -> Entry:
    """Add a circuit whose key has a point of B2 that is in the group and not the one of B1."""

    def other(zkey: bytes) -> bytes:
        group = BN254.g2
        points, size = bytes(read_zkey("zkey", zkey).queries[Query.B2]), group.point_size_bytes
        at = next(i for i in range(0, len(points), size) if any(points[i : i + size]))
        changed = points[:at] + group.to_device(group.generator) + points[at + size :]
        return zkey.replace(points, changed)

    return _add_changed(root, vector, other)


def _add_changed(root: Path, vector: Path, change: Callable[[bytes], bytes]) -> Entry:
    good = add(root / "good", vector)
    bad = root / "bad.zkey"
    bad.write_bytes(change(good.file("zkey").read_bytes()))
    with Catalogue(root).stage(vector.name) as staging:
        staging.copy("zkey", bad)
        staging.copy("r1cs", good.file("r1cs"))
        staging.copy("vk", good.file("vk"))
        staging.copy("sym", good.file("sym"))
        return staging.publish(replace(good.manifest, files=dict(staging.files)))


def lease_of(entry: Entry, data: bytes, **fields: Any) -> dispatch_pb2.Lease:
    """A lease of a circuit with an inline input."""
    given: dict[str, Any] = {
        "lease_id": "1.1",
        "job_id": "job",
        "attempt": 1,
        "input_format": "wtns",
        "inline": data,
        "reserved": types_pb2.Bytes(host=GIB),
        "job_seq": 1,
    }
    return dispatch_pb2.Lease(
        circuit_id=entry.circuit_id,
        manifest_sha256=entry.manifest_sha256,
        input=types_pb2.BlobRef(sha256=hashlib.sha256(data).digest(), size_bytes=len(data)),
        **{**given, **fields},
    )
