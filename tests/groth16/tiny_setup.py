"""A trusted set-up with known toxic waste over Python integers, for circuits of a few rows.

Straight from Groth, eprint 2016/260 section 3.2, in both families of keys. Each matrix is a list
of rows, each row a dict from wire to coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from partita.groth16.curves import Curve, curve_named
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness

Row = dict[int, int]


@dataclass
class Circuit:
    """Rows of (A·w)(B·w) = C·w with a witness that satisfies them; wires 1..n_public public."""

    n_public: int
    n_wires: int
    rows: list[tuple[Row, Row, Row]]
    witness: list[int]
    name: str = ""

    def witness_of(self, curve_name: str, values: list[int] | None = None) -> Witness:
        """The (or another) witness as bytes."""
        r = curve_named(curve_name).r
        return Witness(
            curve_name,
            b"".join((v % r).to_bytes(32, "little") for v in values or self.witness),
        )

    def r1cs(self, curve_name: str) -> R1cs:
        """The system without the rows that bind public wires."""
        matrices, dictionary = to_csr(
            curve_named(curve_name), [list(m) for m in zip(*self.rows, strict=True)]
        )
        a, b, c = matrices
        return R1cs(curve_name, 0, self.n_public, 0, self.n_wires, a, b, c, dictionary)


def to_csr(curve: Curve, matrices: list[list[Row]]) -> tuple[list[SparseMatrix], bytes]:
    """CSR matrices with one dictionary of the distinct coefficients."""
    indexes: dict[int, int] = {}
    result = []
    for rows in matrices:
        row_ptr, wires, coefficients = [0], [], []
        for row in rows:
            for wire, value in row.items():
                wires.append(wire)
                coefficients.append(indexes.setdefault(value % curve.r, len(indexes)))
            row_ptr.append(len(wires))
        result.append(
            SparseMatrix(
                np.array(row_ptr, dtype=np.uint64),
                np.array(wires, dtype=np.uint32),
                np.array(coefficients, dtype=np.uint32),
            )
        )
    return result, b"".join(v.to_bytes(32, "little") for v in indexes)


def lagrange_at(curve: Curve, root: int, size: int, tau: int) -> list[int]:
    """L_i(τ) for i < size over the powers of a root: ω^i (τ^n - 1) / (n (τ - ω^i))."""
    r = curve.r
    vanishing = (pow(tau, size, r) - 1) % r
    return [
        pow(root, i, r) * vanishing * pow(size * (tau - pow(root, i, r)), -1, r) % r
        for i in range(size)
    ]


@lru_cache(maxsize=4096)
def _g1(curve_name: str, scalar: int) -> bytes:
    g1 = curve_named(curve_name).g1
    return g1.to_device(g1.mul(g1.generator, scalar))


@lru_cache(maxsize=4096)
def _g2(curve_name: str, scalar: int) -> bytes:
    g2 = curve_named(curve_name).g2
    return g2.to_device(g2.mul(g2.generator, scalar))


def toxic_waste(curve: Curve, family: KeyFamily) -> list[int]:
    """Alpha, beta, gamma, delta and tau that everybody knows; snarkjs' keys have gamma 1."""
    values = [pow(3, 50 + i, curve.r) for i in range(5)]
    if family is KeyFamily.SNARKJS:
        values[2] = 1
    return values


def set_up(circuit: Circuit, curve_name: str, family: KeyFamily) -> ProvingKey:
    """The proving key of a circuit, with toxic waste that everybody knows."""
    curve = curve_named(curve_name)
    r = curve.r
    alpha, beta, gamma, delta, tau = toxic_waste(curve, family)
    a_rows = [dict(row[0]) for row in circuit.rows]
    b_rows = [dict(row[1]) for row in circuit.rows]
    c_rows = [dict(row[2]) for row in circuit.rows]
    for wire in range(circuit.n_public + 1):
        a_rows.append({wire: 1})
        b_rows.append({})
        c_rows.append({})
    domain = 1 << (len(a_rows) - 1).bit_length()
    at_tau = lagrange_at(curve, curve.root_of_unity(family, domain), domain, tau)

    def columns(rows: list[Row]) -> list[int]:
        sums = [0] * circuit.n_wires
        for i, row in enumerate(rows):
            for wire, value in row.items():
                sums[wire] = (sums[wire] + value * at_tau[i]) % r
        return sums

    u, v, w = columns(a_rows), columns(b_rows), columns(c_rows)
    combined = [(beta * x + alpha * y + z) % r for x, y, z in zip(u, v, w, strict=True)]
    first_private = circuit.n_public + 1
    delta_inv, gamma_inv = pow(delta, -1, r), pow(gamma, -1, r)
    if family is KeyFamily.SNARKJS:
        double = lagrange_at(curve, curve.root_of_unity(family, 2 * domain), 2 * domain, tau)
        h = [x * delta_inv % r for x in double[1::2]]
    else:
        vanishing = (pow(tau, domain, r) - 1) % r
        h = [pow(tau, i, r) * vanishing * delta_inv % r for i in range(domain - 1)]

    def g1(scalars: list[int]) -> bytes:
        return b"".join(_g1(curve_name, x % r) for x in scalars)

    stored = [a_rows, b_rows] if family is KeyFamily.SNARKJS else [a_rows, b_rows, c_rows]
    matrices, dictionary = to_csr(curve, stored)
    return ProvingKey(
        curve=curve_name,
        family=family,
        n_public=circuit.n_public,
        n_wires=circuit.n_wires,
        domain_size=domain,
        alpha_g1=_g1(curve_name, alpha),
        beta_g1=_g1(curve_name, beta),
        delta_g1=_g1(curve_name, delta),
        beta_g2=_g2(curve_name, beta),
        gamma_g2=_g2(curve_name, gamma),
        delta_g2=_g2(curve_name, delta),
        ic=g1([x * gamma_inv for x in combined[:first_private]]),
        queries={
            Query.A: g1(u),
            Query.B1: g1(v),
            Query.B2: b"".join(_g2(curve_name, x) for x in v),
            Query.C: g1([x * delta_inv for x in combined[first_private:]]),
            Query.H: g1(h),
        },
        matrix_a=matrices[0],
        matrix_b=matrices[1],
        matrix_c=matrices[2] if len(matrices) == 3 else None,
        dictionary=dictionary,
    )


def product_circuit() -> Circuit:
    """x² = y, y · x = z, z + x + 5 = out (out public, x private): four wires of values."""
    x = 3
    return Circuit(
        n_public=1,
        n_wires=5,
        rows=[
            ({2: 1}, {2: 1}, {3: 1}),
            ({3: 1}, {2: 1}, {4: 1}),
            ({4: 1, 2: 1, 0: 5}, {0: 1}, {1: 1}),
        ],
        witness=[1, x**3 + x + 5, x, x * x, x**3],
        name="product",
    )


def edge_circuits() -> list[Circuit]:
    """Circuits at the limits of what a key may look like."""
    one_row = Circuit(0, 2, [({1: 1}, {1: 1}, {1: 1})], [1, 1], "one constraint, no public input")
    # 6 rows and 2 that bind make 8; one row more makes 9 in a domain of 16.
    chain = [({i + 1: 1}, {i + 1: 1}, {i + 2: 1}) for i in range(6)]
    full = Circuit(1, 8, chain, [1, *(3 ** (2**i) for i in range(7))], "domain exactly full")
    over = Circuit(
        1,
        9,
        [({i + 1: 1}, {i + 1: 1}, {i + 2: 1}) for i in range(7)],
        [1, *(3 ** (2**i) for i in range(8))],
        "one row more than the domain",
    )
    empty_rows = Circuit(
        2,
        4,
        [({}, {}, {}), ({1: 1}, {2: 1}, {3: 1}), ({}, {2: 1}, {}), ({3: -1}, {}, {})],
        [1, 2, 0, 0],
        "empty rows, zero scalars",
    )
    # Wire 2 is in no row: its points in A, B1 and B2 are at infinity, and so is its L point.
    infinity = Circuit(
        1, 4, [({1: 1}, {0: 1}, {3: 1})], [1, 7, 99, 7], "points at infinity in the key"
    )
    linear = Circuit(
        1, 4, [({1: 2, 2: 1}, {0: 1}, {3: 1})], [1, 4, 5, 13], "linear constraints only"
    )
    all_public = Circuit(2, 3, [({1: 1}, {1: 1}, {2: 1})], [1, 6, 36], "no private wire")
    ones = Circuit(
        1,
        6,
        [({i: 1}, {i: 1}, {i: 1}) for i in range(1, 6)],
        [1, 1, 0, 1, 0, 1],
        "scalars zero and one only",
    )
    largest = Circuit(1, 4, [({1: -1}, {2: -1}, {3: 1})], [1, -1, -1, 1], "the largest scalars")
    return [one_row, full, over, empty_rows, infinity, linear, all_public, ones, largest]
