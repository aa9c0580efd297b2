"""The packed form of a proving key: one file that a backend can take as it lies there.

    header     4096 bytes, see `PackedHeader.to_bytes`
    sections   in the order of `sections_of`, each at a multiple of 64 bytes, zeros between

Points are affine, in Montgomery form, little-endian, in natural order, infinity all zero: the
device form of `partita.groth16.points`. Matrices are CSR (u64 row pointers, u32 wires, u32
coefficients) over one dictionary of canonical scalars. All numbers are little-endian.

The header holds the SHA-256 of all else: of the concatenated SHA-256s of 4 MiB pieces, so that
every core can check its share. It also covers itself. A file exists only if every point in it was
checked for curve and subgroup when it was made.

Not here: where files lie, who made them, when they go (`packed`).
"""

from __future__ import annotations

import hashlib
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from partita.groth16.backend import KeyHead
from partita.groth16.curves import CURVES, SCALAR_SIZE_BYTES
from partita.groth16.errors import FormatError
from partita.groth16.footprint import CircuitShape
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix

LAYOUT_VERSION: Final = 1
HEADER_BYTES: Final = 4096
PIECE_BYTES: Final = 4 << 20
ALIGNMENT: Final = 64

_MAGIC: Final = b"PARTITPK"
_FIELDS: Final = struct.Struct("<8sII32s16s16s8QQ32s")
_DIGEST_BYTES: Final = 32
_ABSENT: Final = (1 << 64) - 1
_SINGLES: Final = ("alpha_g1", "beta_g1", "delta_g1", "beta_g2", "gamma_g2", "delta_g2")
_MATRICES: Final = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class PackedHeader:
    """What a packed file says of itself.

    Attributes:
        source_sha256: of the file or files it was made from, 32 bytes.
        curve, family, n_public, n_wires, domain_size: as in the proving key.
        n_rows: rows of each matrix.
        n_coefficients: scalars in the dictionary.
        n_entries: of A, of B, and of C or None.
        contents_sha256: over everything behind the header, 32 bytes.
    """

    source_sha256: bytes
    curve: str
    family: KeyFamily
    n_public: int
    n_wires: int
    domain_size: int
    n_rows: int
    n_coefficients: int
    n_entries: tuple[int, int, int | None]
    contents_sha256: bytes = bytes(_DIGEST_BYTES)

    @classmethod
    def of(cls, source_sha256: bytes, frame: ProvingKey) -> PackedHeader:
        """The header of a key's file, without its digest; the queries are not looked at."""
        entries_c = None if frame.matrix_c is None else len(frame.matrix_c.wire)
        return cls(
            source_sha256,
            frame.curve,
            frame.family,
            frame.n_public,
            frame.n_wires,
            frame.domain_size,
            frame.matrix_a.n_rows,
            len(frame.dictionary) // SCALAR_SIZE_BYTES,
            (len(frame.matrix_a.wire), len(frame.matrix_b.wire), entries_c),
        )

    def with_contents(self, sha256: bytes) -> PackedHeader:
        """The header with the digest of the contents."""
        return replace(self, contents_sha256=sha256)

    @property
    def shape(self) -> CircuitShape:
        """The counts that memory and time depend on."""
        entries = [count for count in self.n_entries if count is not None]
        return CircuitShape(
            self.curve,
            self.family,
            self.n_public,
            self.n_wires,
            self.domain_size,
            self.n_rows,
            len(entries),
            sum(entries),
            self.n_coefficients,
        )

    @property
    def size_bytes(self) -> int:
        """The size of the whole file."""
        return max(section.end for section in sections_of(self).values())

    def to_bytes(self) -> bytes:
        """The header's HEADER_BYTES.

        magic, u32 layout version, u32 header size, source digest, curve and family (16 bytes
        each, zeros behind the name), u64 n_public, n_wires, domain_size, n_rows, n_coefficients,
        entries of A, of B and of C (all ones without C), file size, digest of the contents,
        digest of the header without this field, zeros.
        """
        entries_c = _ABSENT if self.n_entries[2] is None else self.n_entries[2]
        fields = _FIELDS.pack(
            _MAGIC,
            LAYOUT_VERSION,
            HEADER_BYTES,
            self.source_sha256,
            self.curve.encode(),
            self.family.value.encode(),
            self.n_public,
            self.n_wires,
            self.domain_size,
            self.n_rows,
            self.n_coefficients,
            self.n_entries[0],
            self.n_entries[1],
            entries_c,
            self.size_bytes,
            self.contents_sha256,
        )
        rest = bytes(HEADER_BYTES - len(fields) - _DIGEST_BYTES)
        return fields + hashlib.sha256(fields + rest).digest() + rest

    @classmethod
    def from_bytes(cls, source: str, data: bytes) -> PackedHeader:
        """Read a header.

        Raises:
            FormatError: its digest is wrong, or it is of another layout.
        """
        if len(data) != HEADER_BYTES:
            raise FormatError(source, f"has {len(data)} bytes of a header's {HEADER_BYTES}")
        after = _FIELDS.size + _DIGEST_BYTES
        fields, rest = data[: _FIELDS.size], data[after:]
        if hashlib.sha256(fields + rest).digest() != data[_FIELDS.size : after]:
            raise FormatError(source, "the header is not what was written", section="header")
        (magic, version, _, source_sha256, curve, family, *counts, size_bytes, contents) = (
            _FIELDS.unpack(fields)
        )
        if magic != _MAGIC or version != LAYOUT_VERSION:
            raise FormatError(
                source, f"has layout {version}, only {LAYOUT_VERSION} is read", section="header"
            )
        n_public, n_wires, domain_size, n_rows, n_coefficients, in_a, in_b, in_c = counts
        header = cls(
            source_sha256,
            curve.rstrip(b"\0").decode(),
            KeyFamily(family.rstrip(b"\0").decode()),
            n_public,
            n_wires,
            domain_size,
            n_rows,
            n_coefficients,
            (in_a, in_b, None if in_c == _ABSENT else in_c),
            contents,
        )
        if size_bytes != header.size_bytes:
            raise FormatError(
                source, f"claims {size_bytes} bytes, its counts make {header.size_bytes}"
            )
        return header


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a section lies in the file."""

    offset: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The offset of the first byte behind it."""
        return self.offset + self.size_bytes


def sections_of(header: PackedHeader) -> dict[str, Extent]:
    """Every section in the order of the file.

    Names: the single points, "ic", "dictionary", then for each matrix "a.row_ptr", "a.wire",
    "a.coefficient", then the queries by their values ("query.a", ...).
    """
    curve = CURVES[header.curve]
    g1, g2 = curve.g1.point_size_bytes, curve.g2.point_size_bytes
    sizes = {name: g1 if name.endswith("g1") else g2 for name in _SINGLES}
    sizes["ic"] = (header.n_public + 1) * g1
    sizes["dictionary"] = header.n_coefficients * SCALAR_SIZE_BYTES
    for name, count in zip(_MATRICES, header.n_entries, strict=True):
        if count is not None:
            sizes[f"{name}.row_ptr"] = 8 * (header.n_rows + 1)
            sizes[f"{name}.wire"] = 4 * count
            sizes[f"{name}.coefficient"] = 4 * count
    head = KeyHead(
        header.curve,
        header.family,
        header.n_public,
        header.n_wires,
        header.domain_size,
        *([b""] * 5),
    )
    for query in Query:
        sizes[f"query.{query.value}"] = head.count(query) * (g2 if query is Query.B2 else g1)
    extents: dict[str, Extent] = {}
    at = HEADER_BYTES
    for name, size_bytes in sizes.items():
        extents[name] = Extent(at, size_bytes)
        at = aligned(at + size_bytes)
    return extents


def aligned(offset: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def frame_section(frame: ProvingKey, name: str) -> bytes | memoryview:
    """The bytes of a section that is no query, from a key."""
    if name in {*_SINGLES, "ic", "dictionary"}:
        found: bytes = getattr(frame, name)
        return found
    matrix: SparseMatrix = getattr(frame, f"matrix_{name[0]}")
    kind = "<u8" if name.endswith("row_ptr") else "<u4"
    return np.ascontiguousarray(getattr(matrix, name[2:]), dtype=kind).data.cast("B")


def key_of(header: PackedHeader, view: memoryview) -> ProvingKey:
    """The key in a packed file, its queries and matrices views of the file's bytes."""
    sections = sections_of(header)

    def part(name: str) -> memoryview:
        return view[sections[name].offset : sections[name].end]

    def matrix(name: str) -> SparseMatrix:
        return SparseMatrix(
            np.frombuffer(part(f"{name}.row_ptr"), dtype="<u8"),
            np.frombuffer(part(f"{name}.wire"), dtype="<u4"),
            np.frombuffer(part(f"{name}.coefficient"), dtype="<u4"),
        )

    return ProvingKey(
        curve=header.curve,
        family=header.family,
        n_public=header.n_public,
        n_wires=header.n_wires,
        domain_size=header.domain_size,
        **{name: bytes(part(name)) for name in _SINGLES},
        ic=bytes(part("ic")),
        queries={query: part(f"query.{query.value}") for query in Query},
        matrix_a=matrix("a"),
        matrix_b=matrix("b"),
        matrix_c=None if header.n_entries[2] is None else matrix("c"),
        dictionary=bytes(part("dictionary")),
    )


def contents_digest(view: memoryview) -> bytes:
    """The digest over everything behind the header of a file, on all cores."""
    contents = view[HEADER_BYTES:]
    starts = range(0, len(contents), PIECE_BYTES)

    def piece(start: int) -> bytes:
        return hashlib.sha256(contents[start : start + PIECE_BYTES]).digest()

    cores = min(len(os.sched_getaffinity(0)), max(1, len(starts)))
    with ThreadPoolExecutor(cores, thread_name_prefix="digest") as pool:
        return hashlib.sha256(b"".join(pool.map(piece, starts))).digest()


class ContentsDigest:
    """`contents_digest` of bytes that come one after the other."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._piece = hashlib.sha256()
        self._left_bytes = PIECE_BYTES

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while len(view):
            taken = view[: self._left_bytes]
            self._piece.update(taken)
            self._left_bytes -= len(taken)
            view = view[len(taken) :]
            if not self._left_bytes:
                self._finish_piece()

    def digest(self) -> bytes:
        """The digest of all bytes taken; ends the object's use."""
        if self._left_bytes != PIECE_BYTES:
            self._finish_piece()
        return hashlib.sha256(b"".join(self._pieces)).digest()

    def _finish_piece(self) -> None:
        self._pieces.append(self._piece.digest())
        self._piece = hashlib.sha256()
        self._left_bytes = PIECE_BYTES
