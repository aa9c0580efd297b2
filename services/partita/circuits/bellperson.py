"""Keys of bellperson, on BLS12-381: parameter files (.params) and verifying keys (.vk).

    .vk      alpha_g1 beta_g1 beta_g2 gamma_g2 delta_g1 delta_g2, u32 n, n points IC
    .params  a .vk, then for each of H, L, A, B1 (G1) and B2 (G2): u32 n, n points

Points are uncompressed, big-endian, with the flags of the Zcash form; counts are big-endian. There
is no magic word, no padding and nothing behind the last point, but the mark of a development
set-up where one made the parameters (`development`). Infinity occurs nowhere: A, B1 and
B2 hold the points of the wires that occur, and only the R1CS says which those are. In `ProvingKey`
every wire has its point, infinity where the file has none.

Every point that is read is checked for curve and subgroup.

Source: bellperson 0.27, `src/groth16/params.rs` and `verifying_key.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from partita.circuits.bellperson_rows import BellpersonRows, bellperson_rows
from partita.circuits.container import Section
from partita.circuits.development import DEVELOPMENT_MARK
from partita.groth16.curves import BLS12_381
from partita.groth16.errors import EncodingError, FormatError, MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import points_from_uncompressed, points_to_uncompressed
from partita.groth16.verifying_key import VerifyingKey

if TYPE_CHECKING:
    import numpy.typing as npt

    from partita.groth16.r1cs import R1cs

_SINGLES: Final = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")
_SIZES: Final = {
    "g1": BLS12_381.g1.point_size_bytes,
    "g2": BLS12_381.g2.point_size_bytes,
}
_QUERIES: Final = (
    (Query.H, "h", "g1"),
    (Query.C, "l", "g1"),
    (Query.A, "a", "g1"),
    (Query.B1, "b_g1", "g1"),
    (Query.B2, "b_g2", "g2"),
)
_GROUPS: Final = {query: group for query, _, group in _QUERIES}
_CHUNK: Final = 1 << 15
"""Wires that are read at once: 3 MiB of G1."""


@dataclass(frozen=True, slots=True)
class BellpersonVk:
    """A verifying key with the two points that only provers need; points in device form.

    Attributes:
        alpha_g1, beta_g1, delta_g1, beta_g2, gamma_g2, delta_g2: single points.
        ic: the points IC, concatenated.
    """

    alpha_g1: bytes
    beta_g1: bytes
    beta_g2: bytes
    gamma_g2: bytes
    delta_g1: bytes
    delta_g2: bytes
    ic: bytes

    @classmethod
    def of_proving_key(cls, key: ProvingKey) -> BellpersonVk:
        """The verifying key in a proving key; MismatchError for one of another curve or family."""
        if key.curve != BLS12_381.name:
            raise MismatchError("curve of a bellperson key", BLS12_381.name, key.curve)
        if key.family is not KeyFamily.BELLPERSON:
            raise MismatchError(
                "family of the key",
                KeyFamily.BELLPERSON.value,
                key.family.value,
                "keys of snarkjs hold other H points and cannot be written as bellperson's",
            )
        return cls(**{name: getattr(key, name) for name in _SINGLES}, ic=key.ic)

    @property
    def n_public(self) -> int:
        """The length of a statement."""
        return len(self.ic) // _SIZES["g1"] - 1

    def verifying_key(self) -> VerifyingKey:
        """What a verifier needs of it."""
        g1, g2 = BLS12_381.g1, BLS12_381.g2
        alpha = g1.from_device(self.alpha_g1, "alpha_g1")
        names = ("beta_g2", "gamma_g2", "delta_g2")
        beta, gamma, delta = (g2.from_device(getattr(self, name), name) for name in names)
        if alpha is None or beta is None or gamma is None or delta is None:
            raise EncodingError("verifying key", "a single point is infinity")
        ic = tuple(g1.each_from_device(self.ic, "ic"))
        return VerifyingKey(BLS12_381.name, alpha, beta, gamma, delta, ic)

    def to_bytes(self) -> bytes:
        """The bytes of a .vk file, which are also the first of a .params file."""
        parts = [_uncompressed(getattr(self, name), name[-2:]) for name in _SINGLES]
        return b"".join([*parts, _count(self.n_public + 1), _uncompressed(self.ic, "g1")])


def read_vk(source: str, data: bytes | memoryview) -> BellpersonVk:
    """Read a .vk file.

    Args:
        source: the name of the file, for errors.
        data: all its bytes.

    Raises:
        FormatError: cut off or too long, or no IC.
        EncodingError: a point is malformed, off the curve, outside the subgroup or infinity.
    """
    file = _File(source, data)
    vk = file.vk()
    file.done()
    return vk


def read_params_vk(source: str, data: bytes | memoryview) -> BellpersonVk:
    """Read the .vk that a .params file begins with; the rest is not looked at.

    Raises:
        FormatError, EncodingError: as `read_vk`.
    """
    return _File(source, data).vk()


class ParamsFile:
    """A .params file with the constraint system it belongs to; its queries are read by demand.

    Args:
        source: the name of the file, for errors.
        data: all its bytes; they stay in use.
        r1cs: the constraint system; the wires it names have the points.

    Raises:
        FormatError: the file is cut off or too long.
        EncodingError: as `read_vk`, for the verifying key and IC.
        MismatchError: the R1CS is of another curve, or has other counts than the file.
    """

    def __init__(self, source: str, data: bytes | memoryview, r1cs: R1cs) -> None:
        if r1cs.curve != BLS12_381.name:
            raise MismatchError("curve of the .r1cs", BLS12_381.name, r1cs.curve)
        file = _File(source, data)
        self._vk = file.vk()
        self._sections = {query: file.points(name, group) for query, name, group in _QUERIES}
        file.skip_development_mark()
        file.done()
        rows = bellperson_rows(r1cs)
        self._check_counts(source, r1cs, rows)
        self._present = {Query.A: rows.in_a, Query.B1: rows.in_b, Query.B2: rows.in_b}
        self.frame = ProvingKey(
            curve=BLS12_381.name,
            family=KeyFamily.BELLPERSON,
            n_public=r1cs.n_public,
            n_wires=r1cs.n_wires,
            domain_size=rows.domain_size,
            **{name: getattr(self._vk, name) for name in _SINGLES},
            ic=self._vk.ic,
            queries={},
            matrix_a=rows.matrix_a,
            matrix_b=rows.matrix_b,
            matrix_c=rows.matrix_c,
            dictionary=rows.dictionary,
        )

    @property
    def dense_size_bytes(self) -> int:
        """Bytes of all queries in device form, infinity included."""
        return sum(
            len(present) * _SIZES[_GROUPS[query]]
            if (present := self._present.get(query)) is not None
            else len(section.data)
            for query, section in self._sections.items()
        )

    def chunks(self, query: Query) -> Iterator[bytes]:
        """The points of a query, in device form and in order, a few MiB at a time.

        Raises:
            EncodingError: names section, index and byte of the first that is no finite point of
                the group.
        """
        section, group = self._sections[query], _GROUPS[query]
        size = _SIZES[group]
        present = self._present.get(query)
        count = len(section.data) // size if present is None else len(present)
        taken = 0
        for start in range(0, count, _CHUNK):
            wanted = None if present is None else present[start : start + _CHUNK]
            n_here = min(_CHUNK, count - start) if wanted is None else int(wanted.sum())
            plain = section.data[taken * size : (taken + n_here) * size]
            points = _read_points(section, group, plain, taken)
            taken += n_here
            if wanted is None or n_here == len(wanted):
                yield points
            else:
                dense = np.zeros((len(wanted), size), dtype=np.uint8)
                dense[wanted] = np.frombuffer(points, dtype=np.uint8).reshape(-1, size)
                yield dense.tobytes()

    def _check_counts(self, source: str, r1cs: R1cs, rows: BellpersonRows) -> None:
        n_private = r1cs.n_wires - r1cs.n_public - 1
        n_b = int(rows.in_b.sum())
        found = {
            query: len(self._sections[query].data) // _SIZES[group] for query, _, group in _QUERIES
        }
        for name, expected, count in (
            ("ic", r1cs.n_public + 1, self._vk.n_public + 1),
            ("h", rows.domain_size - 1, found[Query.H]),
            ("l", n_private, found[Query.C]),
            ("a", int(rows.in_a.sum()), found[Query.A]),
            ("b_g1", n_b, found[Query.B1]),
            ("b_g2", n_b, found[Query.B2]),
        ):
            if count != expected:
                raise MismatchError(
                    f"number of points of {name}",
                    expected,
                    count,
                    f"{source} and the .r1cs are of different circuits",
                )


def write_params(key: ProvingKey, *, development: bool = False) -> Iterator[bytes]:
    """The bytes of a .params file, a few MiB at a time.

    Args:
        key: of bellperson's family, on BLS12-381; its points are not checked.
        development: whether a development set-up made it, which the file then says.

    Raises:
        MismatchError: another family or curve, or B1 and B2 have infinity at different wires.
        EncodingError: a point is infinity where the file cannot have it: an input's in A, or
            any in H, L or IC.
    """
    vk = BellpersonVk.of_proving_key(key)
    in_b = _finite(key, Query.B1)
    if not np.array_equal(in_b, _finite(key, Query.B2)):
        raise MismatchError("wires that occur in B", "the same in G1 and G2", "different ones")
    in_a = _finite(key, Query.A)
    for name, finite in (
        ("ic", _finite_of(key.ic, "g1")),
        ("a", in_a[: key.n_public + 1]),
        ("l", _finite(key, Query.C)),
        ("h", _finite(key, Query.H)),
    ):
        if not finite.all():
            raise EncodingError(
                f"{name}[{int(np.argmin(finite))}]",
                "infinity, which bellperson's files cannot hold: every private wire must occur "
                "in a constraint",
            )
    yield vk.to_bytes()
    for query, _, group in _QUERIES:
        present = {Query.A: in_a, Query.B1: in_b, Query.B2: in_b}.get(query)
        yield from _query_bytes(key.queries[query], group, present)
    if development:
        yield DEVELOPMENT_MARK


def _query_bytes(
    points: bytes | memoryview, group: str, present: npt.NDArray[np.bool_] | None
) -> Iterator[bytes]:
    size = _SIZES[group]
    count = len(points) // size
    yield _count(count if present is None else int(present.sum()))
    for start in range(0, count, _CHUNK):
        chunk = points[start * size : (start + _CHUNK) * size]
        if present is not None:
            kept = present[start : start + _CHUNK]
            chunk = np.frombuffer(chunk, dtype=np.uint8).reshape(-1, size)[kept].tobytes()
        yield _uncompressed(chunk, group)


def _finite(key: ProvingKey, query: Query) -> npt.NDArray[np.bool_]:
    return _finite_of(key.queries[query], _GROUPS[query])


def _finite_of(points: bytes | memoryview, group: str) -> npt.NDArray[np.bool_]:
    """Which points are not infinity."""
    words = np.frombuffer(points, dtype="<u8").reshape(-1, _SIZES[group] // 8)
    found = np.empty(len(words), dtype=np.bool_)
    for start in range(0, len(words), _CHUNK):
        found[start : start + _CHUNK] = words[start : start + _CHUNK].any(axis=1)
    return found


def _uncompressed(points: bytes | memoryview, group: str) -> bytes:
    return points_to_uncompressed(BLS12_381.name, group, points)


def _count(count: int) -> bytes:
    return count.to_bytes(4, "big")


def _read_points(section: Section, group: str, plain: memoryview, first: int) -> bytes:
    """Points of a section, the first of which has this index there; all finite, all checked."""
    size = _SIZES[group]

    def where(index: int) -> str:
        name = section.name if section.name in _SINGLES else f"{section.name}[{first + index}]"
        return f"{section.source}, {name}, byte {section.offset + (first + index) * size}"

    points = points_from_uncompressed(BLS12_381.name, group, plain, where)
    finite = _finite_of(points, group)
    if not finite.all():
        raise EncodingError(where(int(np.argmin(finite))), "the point at infinity")
    return points


class _File:
    """A cursor over a file that has no structure but its counts."""

    def __init__(self, source: str, data: bytes | memoryview) -> None:
        self._source = source
        self._data = memoryview(data)
        self._at = 0

    def vk(self) -> BellpersonVk:
        singles: dict[str, bytes] = {}
        for name in _SINGLES:
            section = self._take(name, _SIZES[name[-2:]], "the point")
            singles[name] = _read_points(section, name[-2:], section.data, 0)
        ic = self.points("ic", "g1")
        if not ic.data:
            raise FormatError(self._source, "has no point; it has at least one", section="ic")
        return BellpersonVk(**singles, ic=_read_points(ic, "g1", ic.data, 0))

    def points(self, name: str, group: str) -> Section:
        """A count and the points that it announces, which are not looked at."""
        count = int.from_bytes(self._take(name, 4, "the number of points").data, "big")
        return self._take(name, count * _SIZES[group], f"a count of {count} points")

    def skip_development_mark(self) -> None:
        """Take the mark of a development set-up if it is all that is left."""
        if self._data[self._at :] == DEVELOPMENT_MARK:
            self._at = len(self._data)

    def done(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise FormatError(
                self._source, f"{left} bytes too many behind the last point", offset=self._at
            )

    def _take(self, name: str, size_bytes: int, what: str) -> Section:
        left = len(self._data) - self._at
        if size_bytes > left:
            raise FormatError(
                self._source,
                f"{what} needs {size_bytes} bytes, the file has {left} left: it is cut off",
                section=name,
                offset=self._at,
            )
        self._at += size_bytes
        data = self._data[self._at - size_bytes : self._at]
        return Section(self._source, name, self._at - size_bytes, data)
