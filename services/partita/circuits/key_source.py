"""The proving key of a circuit as its own files have it, whichever format that is.

A `KeySource` gives everything but the queries at once, and the points of the queries piece by
piece: what makes a packed file needs no more memory than a piece.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from partita.circuits.bellperson import ParamsFile
from partita.circuits.r1cs_file import read_r1cs
from partita.circuits.zkey import read_zkey
from partita.groth16.curves import CURVES
from partita.groth16.errors import MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import check_points

if TYPE_CHECKING:
    from collections.abc import Mapping

    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.manifest import Manifest
    from partita.groth16.r1cs import R1cs

_CHUNK: Final = 1 << 15
"""Points that are handed on at once: 6 MiB of G2 on BLS12-381."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """A proving key that can be read piece by piece.

    Attributes:
        frame: the key without its queries.
        chunks: the points of a query in device form and in order; each is checked for curve and
            subgroup before it is handed on, unless it was computed here. EncodingError names the
            first that fails.
        whole: the key with its queries, for a backend that takes it without a packed file.
        whole_size_bytes: memory that the queries of `whole` take beside the file.
        whole_is_checked: whether the points of `whole` were checked.
    """

    frame: ProvingKey
    chunks: Callable[[Query], Iterator[bytes | memoryview]]
    whole: Callable[[], ProvingKey]
    whole_size_bytes: int
    whole_is_checked: bool


def zkey_source(source: str, data: bytes | memoryview) -> KeySource:
    """The key in a .zkey file; raises what `read_zkey` raises."""
    key = read_zkey(source, data)

    def chunks(query: Query) -> Iterator[bytes | memoryview]:
        group = "g2" if query is Query.B2 else "g1"
        for index, chunk in enumerate(_pieces(key, query)):
            where = f"{source}, query {query.value}"
            check_points(key.curve, group, chunk, where, index * _CHUNK)
            yield chunk

    return KeySource(replace(key, queries={}), chunks, lambda: key, 0, whole_is_checked=False)


def computed_source(key: ProvingKey, source: KeySource) -> KeySource:
    """A key that was computed in this process, as the file that was written of it has it.

    Args:
        key: whose points need no check.
        source: of the file.
    """
    return replace(source, chunks=lambda query: _pieces(key, query))


def _pieces(key: ProvingKey, query: Query) -> Iterator[bytes | memoryview]:
    """The points of a query, `_CHUNK` at once, without a copy."""
    points = memoryview(key.queries[query])
    group = CURVES[key.curve].g2 if query is Query.B2 else CURVES[key.curve].g1
    step = _CHUNK * group.point_size_bytes
    for start in range(0, len(points), step):
        yield points[start : start + step]


def params_source(source: str, data: bytes | memoryview, r1cs: R1cs) -> KeySource:
    """The key in bellperson's .params with its constraint system; raises what `ParamsFile` does."""
    file = ParamsFile(source, data, r1cs)

    def whole() -> ProvingKey:
        return replace(file.frame, queries={q: b"".join(file.chunks(q)) for q in Query})

    return KeySource(file.frame, file.chunks, whole, file.dense_size_bytes, whole_is_checked=True)


def key_source(manifest: Manifest, files: CircuitFiles) -> KeySource:
    """The proving key of a circuit of the catalogue.

    Raises:
        InputError: a file is missing, altered or malformed, or not the manifest's.
    """
    if manifest.family is KeyFamily.SNARKJS:
        source = zkey_source("zkey", files.open("zkey", manifest.files["zkey"]))
    else:
        r1cs = read_r1cs("r1cs", files.open("r1cs", manifest.files["r1cs"]))
        source = params_source("params", files.open("params", manifest.files["params"]), r1cs)
    require_counts(manifest, source.frame)
    return source


def require_counts(manifest: Manifest, frame: ProvingKey) -> None:
    """Raise MismatchError unless a key has the counts of a manifest."""
    for name in ("curve", "family", "n_public", "n_wires", "domain_size"):
        if getattr(frame, name) != getattr(manifest, name):
            raise MismatchError(
                f"{name} of the proving key", getattr(manifest, name), getattr(frame, name)
            )


def source_sha256(files: Mapping[str, str]) -> str:
    """What identifies the source of a circuit's key, in hex.

    The digest of the .zkey; for bellperson, whose key needs both, the SHA-256 over the digests
    (32 bytes each) of the .params and of the .r1cs.

    Args:
        files: digests by role, as in a manifest.
    """
    if "zkey" in files:
        return files["zkey"]
    both = bytes.fromhex(files["params"]) + bytes.fromhex(files["r1cs"])
    return hashlib.sha256(both).hexdigest()
