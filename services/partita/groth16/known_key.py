"""Small keys whose every point is a known multiple of its generator, for self-tests.

Whoever knows the exponents knows every sum of such a key without adding a point: the sum of
s_i · (x_i·G) is (Σ s_i·x_i)·G, arithmetic of integers modulo r. So what a backend computes is
compared with what must come out, by a way that shares nothing with it.

The toxic waste of these keys is public: a proof under them proves nothing to anybody.

Source: Groth, eprint 2016/260, section 3.2.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from partita.groth16.curves import SCALAR_SIZE_BYTES, Curve, curve_named
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.points import Group
from partita.groth16.witness import Witness

E = TypeVar("E")
_Row = dict[int, int]

_N_PUBLIC = 1
_ROWS: tuple[tuple[_Row, _Row, _Row], ...] = (
    ({2: 1}, {2: 1}, {3: 1}),
    ({3: 1}, {2: 1}, {5: 1}),
    ({5: 1, 2: 1, 0: 5}, {0: 1}, {1: 1}),
    ({6: -1}, {6: -1}, {8: 1}),
    ({7: 1}, {2: -3}, {}),
    ({}, {}, {}),
)
_WITNESS = (1, 35, 3, 9, 12345, 27, -1, 0, 1)
"""x = 3 with x³ + x + 5 public; -1, 1 and 0; wire 4 is in no row: its points are at infinity."""
_SUM_POINTS = 64
"""Points of the key for sums, a power of two: all edge scalars and as many others again."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key, a witness for it, and what its sums must be.

    Attributes:
        key: the key; of "sums" only the queries mean anything, it proves nothing.
        witness: all wires.
        sums: the sum of each query in device form: of H with the quotient of the witness if the
            key can prove, otherwise with the witness itself.
    """

    key: ProvingKey
    witness: Witness
    sums: dict[Query, bytes]


def _scalar(value: int) -> bytes:
    return value.to_bytes(SCALAR_SIZE_BYTES, "little")


def _points(group: Group[E], exponents: list[int]) -> bytes:
    return b"".join(group.to_device(group.mul(group.generator, x)) for x in exponents)


def _matrix(rows: list[_Row], curve: Curve, indexes: dict[int, int]) -> SparseMatrix:
    entries = [[(wire, value % curve.r) for wire, value in row.items()] for row in rows]
    flat = [entry for row in entries for entry in row]
    return SparseMatrix(
        np.cumsum([0] + [len(row) for row in entries]).astype(np.uint64),
        np.array([wire for wire, _ in flat], dtype=np.uint32),
        np.array([indexes.setdefault(value, len(indexes)) for _, value in flat], dtype=np.uint32),
    )


def _lagrange(curve: Curve, family: KeyFamily, size: int, tau: int) -> list[int]:
    """L_i(τ) over the powers of the root ω of that order: ω^i·(τⁿ - 1) / (n·(τ - ω^i))."""
    r, root = curve.r, curve.root_of_unity(family, size)
    vanishing = pow(tau, size, r) - 1
    powers = [pow(root, i, r) for i in range(size)]
    return [p * vanishing * pow(size * (tau - p), -1, r) % r for p in powers]


def proving_key(curve_name: str, family: KeyFamily) -> KnownKey:
    """A key of eight rows that proves, in the conventions of a family."""
    curve = curve_named(curve_name)
    r = curve.r
    alpha, beta, delta, tau = (pow(5, 40 + i, r) for i in range(4))
    gamma = 1 if family is KeyFamily.SNARKJS else pow(5, 44, r)
    rows = [*_ROWS, *(({wire: 1}, {}, {}) for wire in range(_N_PUBLIC + 1))]
    size = 1 << (len(rows) - 1).bit_length()
    at_tau = _lagrange(curve, family, size, tau)
    columns = [[0] * len(_WITNESS) for _ in range(3)]
    for row, value in zip(rows, at_tau, strict=False):
        for column, part in zip(columns, row, strict=True):
            for wire, factor in part.items():
                column[wire] = (column[wire] + factor * value) % r
    u, v, w = columns
    joined = [(beta * x + alpha * y + z) % r for x, y, z in zip(u, v, w, strict=True)]
    over_delta = pow(delta, -1, r)
    private = [x * over_delta % r for x in joined[_N_PUBLIC + 1 :]]
    if family is KeyFamily.SNARKJS:
        h = [x * over_delta % r for x in _lagrange(curve, family, 2 * size, tau)[1::2]]
    else:
        vanishing = (pow(tau, size, r) - 1) * over_delta
        h = [pow(tau, i, r) * vanishing % r for i in range(size - 1)]
    indexes: dict[int, int] = {}
    matrices = [_matrix([row[i] for row in rows], curve, indexes) for i in range(3)]
    g1, g2 = curve.g1, curve.g2
    key = ProvingKey(
        curve=curve_name,
        family=family,
        n_public=_N_PUBLIC,
        n_wires=len(_WITNESS),
        domain_size=size,
        alpha_g1=_points(g1, [alpha]),
        beta_g1=_points(g1, [beta]),
        delta_g1=_points(g1, [delta]),
        beta_g2=_points(g2, [beta]),
        gamma_g2=_points(g2, [gamma]),
        delta_g2=_points(g2, [delta]),
        ic=_points(g1, [x * pow(gamma, -1, r) for x in joined[: _N_PUBLIC + 1]]),
        queries={
            Query.A: _points(g1, u),
            Query.B1: _points(g1, v),
            Query.B2: _points(g2, v),
            Query.C: _points(g1, private),
            Query.H: _points(g1, h),
        },
        matrix_a=matrices[0],
        matrix_b=matrices[1],
        matrix_c=matrices[2] if family is KeyFamily.BELLPERSON else None,
        dictionary=b"".join(map(_scalar, indexes)),
    )
    values = [x % r for x in _WITNESS]

    def dot(exponents: list[int], scalars: list[int]) -> int:
        return sum(x * s for x, s in zip(exponents, scalars, strict=True)) % r

    a, b, c = (dot(column, values) for column in (u, v, w))
    return KnownKey(
        key,
        Witness(curve_name, b"".join(map(_scalar, values))),
        {
            Query.A: _points(g1, [a]),
            Query.B1: _points(g1, [b]),
            Query.B2: _points(g2, [b]),
            Query.C: _points(g1, [dot(private, values[_N_PUBLIC + 1 :])]),
            # h(τ)·t(τ)/δ, whatever the family's scalars and points of H are.
            Query.H: _points(g1, [(a * b - c) * over_delta % r]),
        },
    )


def _edge_scalars(curve: Curve, count: int) -> list[int]:
    r = curve.r
    edges = [0, 1, 2, r - 1, r - 2, (r - 1) // 2, (r + 1) // 2]
    edges += [(1 << k) - d for k in (8, 13, 16, 31, 32, 63, 64, 128, 192, 252) for d in (0, 1)]
    digests = (hashlib.sha256(b"scalar %d" % i).digest() for i in range(count))
    return [*edges, *(int.from_bytes(d, "little") % r for d in digests)][:count]


def _multiples(group: Group[E], exponents: list[int]) -> bytes:
    """Points of small exponents of either sign, each by one addition from the last."""
    known: dict[int, tuple[E, E] | None] = {0: None}
    for x in range(1, max(map(abs, exponents)) + 1):
        known[x] = group.add(known[x - 1], group.generator)
        known[-x] = group.neg(known[x])
    return b"".join(group.to_device(known[x]) for x in exponents)


def sums_key(curve_name: str) -> KnownKey:
    """A key for sums over edge values.

    Among its points are infinity, equal and opposite ones; among its scalars 0, 1, r - 1 and
    those at the limits of bytes, words and windows.
    """
    curve = curve_named(curve_name)
    n = _SUM_POINTS
    exponents = [0, 1, 1, -1, 2, 2, -2, 0, *range(3, n - 5)]
    scalars = _edge_scalars(curve, n)
    g1, g2 = curve.g1, curve.g2
    in_g1, in_g2 = _multiples(g1, exponents), _multiples(g2, exponents)
    one = g1.to_device(g1.generator)
    one_g2 = g2.to_device(g2.generator)
    rows = np.zeros(2, dtype=np.uint64)
    nothing = np.zeros(0, dtype=np.uint32)
    empty = SparseMatrix(rows, nothing, nothing)
    key = ProvingKey(
        curve=curve_name,
        family=KeyFamily.SNARKJS,
        n_public=0,
        n_wires=n,
        domain_size=n,
        alpha_g1=one,
        beta_g1=one,
        delta_g1=one,
        beta_g2=one_g2,
        gamma_g2=one_g2,
        delta_g2=one_g2,
        ic=one,
        queries={
            Query.A: in_g1,
            Query.B1: in_g1,
            Query.B2: in_g2,
            Query.C: in_g1[g1.point_size_bytes :],
            Query.H: in_g1,
        },
        matrix_a=empty,
        matrix_b=empty,
        matrix_c=None,
        dictionary=_scalar(1),
    )
    total = sum(x * s for x, s in zip(exponents, scalars, strict=True)) % curve.r
    sums = dict.fromkeys(Query, _points(g1, [total]))
    sums[Query.B2] = _points(g2, [total])
    return KnownKey(key, Witness(curve_name, b"".join(map(_scalar, scalars))), sums)
