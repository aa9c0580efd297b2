"""The reference backend: every stage over Python integers, slow and obvious.

It is the oracle the other backends are compared with, byte for byte. It shares no code with
them: recursive transforms straight from the definition, double-and-add sums, affine results.
Good for circuits of some hundred wires.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from partita.groth16.backend import KeyHead, Pending, Ready, Vector
from partita.groth16.curves import SCALAR_SIZE_BYTES, Curve, curve_named
from partita.groth16.errors import EncodingError, FormatError
from partita.groth16.key_checks import check_rows_input, check_shape
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.points import PointG1, PointG2
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness


class ReferenceVector:
    """Scalars as a list of Python integers."""

    def __init__(self, values: list[int]) -> None:
        self._values: list[int] | None = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def values(self) -> list[int]:
        """The scalars; ValueError after `release`."""
        if self._values is None:
            raise ValueError("the vector was released")
        return self._values

    def release(self) -> None:
        """Forget the values."""
        self._values = None


class ReferenceKey:
    """A proving key decoded into Python integers."""

    def __init__(self, key: ProvingKey, *, check: bool) -> None:
        check_shape(key)
        self.head = KeyHead.of(key)
        self._curve = curve_named(key.curve)
        self._matrices = (key.matrix_a, key.matrix_b, key.matrix_c)
        self._coefficients = _scalars(self._curve, key.dictionary, "dictionary")
        g1, g2 = self._curve.g1, self._curve.g2
        self._g1: dict[Query, list[PointG1]] = {
            query: list(g1.each_from_device(key.queries[query], f"query {query.value}"))
            for query in (Query.A, Query.B1, Query.C, Query.H)
        }
        self._b2: list[PointG2] = list(g2.each_from_device(key.queries[Query.B2], "query b2"))
        self.size_bytes = sum(len(q) for q in key.queries.values()) + sum(
            m.row_ptr.nbytes + m.wire.nbytes + m.coefficient.nbytes
            for m in self._matrices
            if m is not None
        )
        if check:
            self._check_points(key)

    def _check_points(self, key: ProvingKey) -> None:
        g1, g2 = self._curve.g1, self._curve.g2
        for name in ("alpha_g1", "beta_g1", "delta_g1"):
            g1.check(g1.from_device(getattr(key, name), name), name)
        for name in ("beta_g2", "gamma_g2", "delta_g2"):
            g2.check(g2.from_device(getattr(key, name), name), name)
        for i, point in enumerate(g1.each_from_device(key.ic, "ic")):
            g1.check(point, f"ic[{i}]")
        for query, points in self._g1.items():
            for i, point in enumerate(points):
                g1.check(point, f"query {query.value}[{i}]")
        for i, point_g2 in enumerate(self._b2):
            g2.check(point_g2, f"query b2[{i}]")

    def witness(self, values: bytes | memoryview) -> ReferenceVector:
        """See `LoadedKey.witness`."""
        return ReferenceVector(_scalars(self._curve, values, "witness"))

    def evaluate(
        self, witness: Vector
    ) -> tuple[ReferenceVector, ReferenceVector, ReferenceVector | None]:
        """See `LoadedKey.evaluate`."""
        w = _values(witness)
        padded = [
            None
            if m is None
            else ReferenceVector(self._pad(_product(self._curve, m, self._coefficients, w)))
            for m in self._matrices
        ]
        a, b, c = padded
        assert a is not None
        assert b is not None
        return a, b, c

    def quotient(self, a: Vector, b: Vector, c: Vector | None) -> ReferenceVector:
        """See `LoadedKey.quotient`."""
        r = self._curve.r
        rows_a, rows_b = _values(a), _values(b)
        if self.head.family is KeyFamily.SNARKJS:
            rows_c = [x * y % r for x, y in zip(rows_a, rows_b, strict=True)]
            h = odd_coset_evaluations(self._curve, rows_a, rows_b, rows_c)
        else:
            assert c is not None
            h = quotient_coefficients(self._curve, rows_a, rows_b, _values(c))
        for vector in (a, b, c):
            if vector is not None:
                vector.release()
        return ReferenceVector(h)

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        """See `LoadedKey.msm`."""
        part = _values(scalars)[start : start + count]
        if query is Query.B2:
            g2 = self._curve.g2
            return Ready(g2.to_device(g2.sum_of_products(zip(self._b2[:count], part, strict=True))))
        g1 = self._curve.g1
        return Ready(
            g1.to_device(g1.sum_of_products(zip(self._g1[query][:count], part, strict=True)))
        )

    def release(self) -> None:
        """Forget the points."""
        self._g1, self._b2 = {}, []

    def _pad(self, rows: list[int]) -> list[int]:
        return rows + [0] * (self.head.domain_size - len(rows))


class ReferenceBackend:
    """See `partita.groth16.backend.Backend`."""

    name = "reference"

    def load(self, key: ProvingKey, *, check: bool) -> ReferenceKey:
        """See `Backend.load`."""
        return ReferenceKey(key, check=check)

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        """See `Backend.lincomb`."""
        c = curve_named(curve)
        if group == "g1":
            decoded = [c.g1.from_device(p, f"points[{i}]") for i, p in enumerate(points)]
            return c.g1.to_device(c.g1.sum_of_products(zip(decoded, scalars, strict=True)))
        decoded_g2 = [c.g2.from_device(p, f"points[{i}]") for i, p in enumerate(points)]
        return c.g2.to_device(c.g2.sum_of_products(zip(decoded_g2, scalars, strict=True)))

    def check_rows(self, r1cs: R1cs, witness: Witness) -> int | None:
        """See `Backend.check_rows`."""
        curve = check_rows_input(r1cs, witness)
        w = _scalars(curve, witness.values, "witness")
        coefficients = _scalars(curve, r1cs.dictionary, "dictionary")
        a, b, c = (
            _product(curve, m, coefficients, w)
            for m in (r1cs.matrix_a, r1cs.matrix_b, r1cs.matrix_c)
        )
        for row in range(r1cs.n_rows):
            if a[row] * b[row] % curve.r != c[row]:
                return row
        return None


def dft(values: Sequence[int], root: int, modulus: int) -> list[int]:
    """The values of a polynomial at root^0, root^1, ... by even and odd halves.

    Args:
        values: coefficients, lowest first; a power of two of them.
        root: a primitive root of unity of that order.
        modulus: of the field.
    """
    n = len(values)
    if n == 1:
        return list(values)
    even = dft(values[0::2], root * root % modulus, modulus)
    odd = dft(values[1::2], root * root % modulus, modulus)
    result = [0] * n
    power = 1
    for i in range(n // 2):
        twisted = power * odd[i] % modulus
        result[i] = (even[i] + twisted) % modulus
        result[i + n // 2] = (even[i] - twisted) % modulus
        power = power * root % modulus
    return result


def interpolate(values: Sequence[int], root: int, modulus: int) -> list[int]:
    """The coefficients of the polynomial with these values at root^0, root^1, ..."""
    scale = pow(len(values), -1, modulus)
    return [x * scale % modulus for x in dft(values, pow(root, -1, modulus), modulus)]


def odd_coset_evaluations(
    curve: Curve, a: Sequence[int], b: Sequence[int], c: Sequence[int]
) -> list[int]:
    """The H scalars of snarkjs' keys: a·b - c on g·<ω>, with g² = ω a root of twice the order."""
    r, m = curve.r, len(a)
    root = curve.root_of_unity(KeyFamily.SNARKJS, m)
    shift = curve.root_of_unity(KeyFamily.SNARKJS, 2 * m)
    on_a, on_b, on_c = (_on_coset(values, root, shift, r) for values in (a, b, c))
    return [(x * y - z) % r for x, y, z in zip(on_a, on_b, on_c, strict=True)]


def quotient_coefficients(
    curve: Curve, a: Sequence[int], b: Sequence[int], c: Sequence[int]
) -> list[int]:
    """The H scalars of bellperson's keys: m - 1 coefficients of (a·b - c) / (x^m - 1).

    Divided on the coset g·<ω> of the field's generator, where x^m - 1 is the constant g^m - 1;
    for a witness that breaks a row the top coefficient is not zero and is dropped, as there.
    """
    r, m = curve.r, len(a)
    root = curve.root_of_unity(KeyFamily.BELLPERSON, m)
    shift = curve.generators[KeyFamily.BELLPERSON]
    on_a, on_b, on_c = (_on_coset(values, root, shift, r) for values in (a, b, c))
    vanishing_inv = pow(pow(shift, m, r) - 1, -1, r)
    on_h = [(x * y - z) * vanishing_inv % r for x, y, z in zip(on_a, on_b, on_c, strict=True)]
    unshift = pow(shift, -1, r)
    h = interpolate(on_h, root, r)
    return [x * pow(unshift, i, r) % r for i, x in enumerate(h)][: m - 1]


def _on_coset(values: Sequence[int], root: int, shift: int, modulus: int) -> list[int]:
    coefficients = interpolate(values, root, modulus)
    shifted = [x * pow(shift, i, modulus) % modulus for i, x in enumerate(coefficients)]
    return dft(shifted, root, modulus)


def _product(
    curve: Curve, matrix: SparseMatrix, coefficients: Sequence[int], w: Sequence[int]
) -> list[int]:
    """matrix · w, one value a row."""
    row_ptr, wire, coefficient = (
        matrix.row_ptr.tolist(),
        matrix.wire.tolist(),
        matrix.coefficient.tolist(),
    )
    return [
        sum(coefficients[coefficient[k]] * w[wire[k]] for k in range(first, last)) % curve.r
        for first, last in pairwise(row_ptr)
    ]


def _scalars(curve: Curve, data: bytes | memoryview, name: str) -> list[int]:
    if len(data) % SCALAR_SIZE_BYTES:
        raise FormatError(name, f"{len(data)} bytes are no 32-byte values")
    values = [
        int.from_bytes(data[i : i + SCALAR_SIZE_BYTES], "little")
        for i in range(0, len(data), SCALAR_SIZE_BYTES)
    ]
    for i, value in enumerate(values):
        if value >= curve.r:
            raise EncodingError(f"{name}[{i}]", "the value is not below r")
    return values


def _values(vector: Vector) -> list[int]:
    if not isinstance(vector, ReferenceVector):
        raise TypeError(f"{type(vector).__name__} is a vector of another backend")
    return vector.values
