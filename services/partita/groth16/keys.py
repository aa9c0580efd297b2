"""Proving keys as every backend takes them.

A key is read once by `partita.circuits` from its file format and then belongs to no format:
points are affine, x then y, coordinates in Montgomery form, little-endian, Fp2 as c0 then c1,
infinity all zero; matrices are CSR with a dictionary of their distinct coefficients.

What differs between formats is the *family*, because it fixes what the H query means:

* snarkjs: H holds the odd Lagrange points of the double domain over delta; the H scalars are
  evaluations of a*b - c on the odd coset (domain_size of them), and c = a∘b is not stored;
* bellperson: H holds tau^i Z(tau)/delta; the H scalars are the domain_size - 1 coefficients of
  the quotient.

Source: Groth, "On the Size of Pairing-Based Non-interactive Arguments", eprint 2016/260.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


class KeyFamily(Enum):
    """The conventions a proving key follows; the value is its name in manifests."""

    SNARKJS = "snarkjs"
    BELLPERSON = "bellperson"


class Query(Enum):
    """A vector of points of the proving key; the value is its name in backends."""

    A = "a"  # G1, one a wire
    B1 = "b1"  # G1, one a wire
    B2 = "b2"  # G2, one a wire
    C = "c"  # G1, one a private wire (the L query), from wire n_public + 1
    H = "h"  # G1, domain_size (snarkjs) or domain_size - 1 (bellperson)


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A CSR matrix over the scalar field.

    Attributes:
        row_ptr: shape (n_rows + 1,), uint64; row i is entries row_ptr[i]..row_ptr[i+1].
        wire: shape (nnz,), uint32, the column of each entry.
        coefficient: shape (nnz,), uint32, indexes of the dictionary that lies beside the matrix.
    """

    row_ptr: npt.NDArray[np.uint64]
    wire: npt.NDArray[np.uint32]
    coefficient: npt.NDArray[np.uint32]

    @property
    def n_rows(self) -> int:
        """The number of rows, empty ones included."""
        return len(self.row_ptr) - 1


@dataclass(frozen=True, slots=True)
class ProvingKey:
    """A Groth16 proving key with the matrices that turn a witness into a, b (and c).

    Attributes:
        curve: the name of the curve: a key of `partita.groth16.curves.CURVES`.
        family: the conventions of the H query.
        n_public: public inputs, the constant wire 0 not counted; wires 1..n_public are public.
        n_wires: all wires, the constant included.
        domain_size: a power of two, at least n_rows of the matrices.
        alpha_g1, beta_g1, delta_g1, beta_g2, gamma_g2, delta_g2: single points, encoded as the
            queries are.
        ic: n_public + 1 points of G1, encoded as the queries are.
        queries: the bytes of each query.
        matrix_a, matrix_b: n_rows x n_wires; the rows that bind the public wires are in A.
        matrix_c: None where the family has c = a∘b.
        dictionary: n_coefficients x 32 bytes, canonical little-endian scalars.
    """

    curve: str
    family: KeyFamily
    n_public: int
    n_wires: int
    domain_size: int
    alpha_g1: bytes
    beta_g1: bytes
    delta_g1: bytes
    beta_g2: bytes
    gamma_g2: bytes
    delta_g2: bytes
    ic: bytes
    queries: Mapping[Query, bytes | memoryview]
    matrix_a: SparseMatrix
    matrix_b: SparseMatrix
    matrix_c: SparseMatrix | None
    dictionary: bytes
