"""Proving keys of snarkjs (.zkey version 1), read into `ProvingKey`.

The queries stay views of the file. The coefficients become two CSR matrices with a dictionary of
their distinct values. All counts are compared with each other before anything is allocated by
them. The single points are checked here; the points of the queries are checked by the backend
that loads the key, and not at all where the file's digest is already trusted.

Only Groth16: keys of PLONK and FFLONK are refused by name.

Format: snarkjs, `src/zkey_utils.js`; a coefficient is stored times R² (R = 2^256), so that one
Montgomery product with a canonical witness value gives a product in Montgomery form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from partita.circuits.container import read_container
from partita.circuits.elements import (
    ELEMENT_BYTES,
    canonical_dictionary,
    distinct,
    first_not_below,
    sparse_matrix,
)
from partita.circuits.snarkjs_curves import read_prime, read_scalar_prime
from partita.circuits.zkey_format import GROTH16, MAGIC, SECTION_NAMES, VERSION, SectionType
from partita.groth16.errors import EncodingError
from partita.groth16.keys import KeyFamily, ProvingKey, Query

if TYPE_CHECKING:
    import numpy.typing as npt

    from partita.circuits.container import Container, Section
    from partita.groth16.curves import Curve
    from partita.groth16.keys import SparseMatrix

_OTHER_PROTOCOLS: Final = {2: "PLONK", 10: "FFLONK"}
ENTRY: Final = np.dtype(
    [("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "<u8", (4,))]
)
"""A coefficient; the value is times R²."""


@dataclass(frozen=True, slots=True)
class _Header:
    curve: Curve
    n_wires: int
    n_public: int
    domain_size: int
    points: dict[str, bytes]


def read_zkey(source: str, data: bytes | memoryview) -> ProvingKey:
    """Read a Groth16 proving key.

    Args:
        source: the name of the file, for errors.
        data: all its bytes; the queries of the result are views of them.

    Raises:
        FormatError: the file is malformed, cut off or too long, of another protocol or curve,
            or its counts contradict each other.
        EncodingError: a single point or a point of IC is off the curve, or a single point is
            outside the subgroup or infinity.
    """
    container = read_container(source, data, magic=MAGIC, version=VERSION, names=SECTION_NAMES)
    _check_protocol(container.section(SectionType.PROTOCOL))
    header = _read_header(source, container.section(SectionType.HEADER))
    ic = _read_ic(source, container.section(SectionType.IC), header)
    queries = _read_queries(container, header)
    matrix_a, matrix_b, dictionary = _read_coefficients(
        container.section(SectionType.COEFFICIENTS), header
    )
    return ProvingKey(
        curve=header.curve.name,
        family=KeyFamily.SNARKJS,
        n_public=header.n_public,
        n_wires=header.n_wires,
        domain_size=header.domain_size,
        ic=ic,
        queries=queries,
        matrix_a=matrix_a,
        matrix_b=matrix_b,
        matrix_c=None,
        dictionary=dictionary,
        **header.points,
    )


def _check_protocol(section: Section) -> None:
    protocol = section.u32("protocol")
    section.done()
    if protocol in _OTHER_PROTOCOLS:
        raise section.error(
            f"this is a key of {_OTHER_PROTOCOLS[protocol]}; only Groth16 keys are read: "
            "make one with `snarkjs groth16 setup`",
            at=0,
        )
    if protocol != GROTH16:
        raise section.error(f"unknown protocol {protocol}; Groth16 is {GROTH16}", at=0)


def _read_header(source: str, section: Section) -> _Header:
    q = read_prime(section, "prime of the base field")
    curve = read_scalar_prime(section, "prime of the scalar field")
    if q != curve.fq.modulus:
        raise section.error(
            f"the scalar field is {curve.name}'s, but the base field has the prime {q}", at=0
        )
    at = section.offset_of_cursor
    n_wires = section.u32("number of wires")
    n_public = section.u32("number of public inputs")
    domain_size = section.u32("domain size")
    if n_public >= n_wires:
        raise section.error(f"{n_public} public inputs do not fit {n_wires} wires", at=at)
    largest = curve.max_domain_size(KeyFamily.SNARKJS)
    if domain_size & (domain_size - 1) or not n_public < domain_size <= largest:
        raise section.error(
            f"a domain of {domain_size}; it must be a power of two above {n_public}, "
            f"at most {largest}",
            at=at + 8,
        )
    points = {
        name: bytes(section.take(group.point_size_bytes, name))
        for name, group in (
            ("alpha_g1", curve.g1),
            ("beta_g1", curve.g1),
            ("beta_g2", curve.g2),
            ("gamma_g2", curve.g2),
            ("delta_g1", curve.g1),
            ("delta_g2", curve.g2),
        )
    }
    section.done()
    for name, encoded in points.items():
        where = f"{source}, {name}"
        if not any(encoded):
            raise EncodingError(where, "the point is infinity, which makes the key worthless")
        if name.endswith("g1"):
            curve.g1.check(curve.g1.from_device(encoded, where), where)
        else:
            curve.g2.check(curve.g2.from_device(encoded, where), where)
    return _Header(curve, n_wires, n_public, domain_size, points)


def _read_ic(source: str, section: Section, header: _Header) -> bytes:
    g1 = header.curve.g1
    section.expect_size(
        (header.n_public + 1) * g1.point_size_bytes, f"{header.n_public} public inputs"
    )
    ic = bytes(section.data)
    for index, point in enumerate(g1.each_from_device(ic, f"{source}, IC")):
        if not g1.is_on_curve(point):
            raise EncodingError(f"{source}, IC[{index}]", "the point is off the curve")
    return ic


def _read_queries(container: Container, header: _Header) -> dict[Query, memoryview]:
    g1_bytes = header.curve.g1.point_size_bytes
    g2_bytes = header.curve.g2.point_size_bytes
    n_private = header.n_wires - header.n_public - 1
    queries: dict[Query, memoryview] = {}
    for query, section_type, count, point_bytes in (
        (Query.A, SectionType.A, header.n_wires, g1_bytes),
        (Query.B1, SectionType.B1, header.n_wires, g1_bytes),
        (Query.B2, SectionType.B2, header.n_wires, g2_bytes),
        (Query.C, SectionType.C, n_private, g1_bytes),
        (Query.H, SectionType.H, header.domain_size, g1_bytes),
    ):
        section = container.section(section_type)
        section.expect_size(count * point_bytes, f"a count of {count} points")
        queries[query] = section.data
    return queries


def _read_coefficients(
    section: Section, header: _Header
) -> tuple[SparseMatrix, SparseMatrix, bytes]:
    count = section.u32("number of coefficients")
    start = section.offset_of_cursor
    section.expect_size(start + count * ENTRY.itemsize, f"a count of {count} coefficients")
    entries = np.frombuffer(section.take(count * ENTRY.itemsize, "coefficients"), dtype=ENTRY)

    def column(name: str, limit: int, what: str) -> npt.NDArray[np.uint32]:
        values = np.ascontiguousarray(entries[name], dtype=np.uint32)
        if len(values) and int(values.max()) >= limit:
            index = int(np.argmax(values >= limit))
            raise section.error(
                f"coefficient {index} is for {name} {values[index]}; {what}",
                at=start + index * ENTRY.itemsize,
            )
        return values

    matrix = column("matrix", 2, "0 is A and 1 is B")
    row = column("row", header.domain_size, f"the domain has {header.domain_size}")
    wire = column("wire", header.n_wires, f"the key has {header.n_wires}")
    values = entries["value"]
    bad = first_not_below(values, header.curve.r)
    if bad is not None:
        raise section.error(
            f"coefficient {bad} is not below the modulus of {header.curve.name}",
            at=start + bad * ENTRY.itemsize + 12,
        )
    table, coefficient = distinct(values)
    n_rows = int(row.max()) + 1 if count else 0
    in_a, in_b = matrix == 0, matrix == 1
    radix = 1 << (8 * ELEMENT_BYTES)
    return (
        sparse_matrix(row[in_a], wire[in_a], coefficient[in_a], n_rows=n_rows),
        sparse_matrix(row[in_b], wire[in_b], coefficient[in_b], n_rows=n_rows),
        canonical_dictionary(
            table, modulus=header.curve.r, factor=pow(radix * radix, -1, header.curve.r)
        ),
    )
