"""Groth16's heavy stages in Rust, on "bls12-381" and "bn254".

Byte forms. Scalars: 32 bytes little-endian, below r. Points of queries and results ("stored"):
affine x then y, coordinates in Montgomery form, little-endian, Fp2 as c0 then c1, infinity all
zero. Proofs and verifying keys: see `VerifyingKey`.

Buffers may be anything that exposes contiguous bytes; nothing may write to them during a call.
Calls that compute release the interpreter lock. Any of them may raise `NativePanic` or, when
memory is refused, `MemoryError`; shapes that do not fit raise `ValueError`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, final

from typing_extensions import Buffer

_Curve = Literal["bls12-381", "bn254"]
_Matrix = tuple[Buffer, Buffer, Buffer]

class NativePanic(RuntimeError):  # noqa: N818 - a panic is named so
    """Native code panicked: a defect of the extension; the process may go on."""

class PointError(ValueError):
    """args = (index, why): bytes that are no point of the group."""

class ScalarError(ValueError):
    """args = (index, why): a field element that is not below its modulus."""

class ProofError(ValueError):
    """args = (element, why): a malformed proof; element is "A", "B", "C" or "length"."""

def build_info() -> dict[str, str]:
    """Keys version, rustc, target, features (separated by spaces), threads."""

def set_threads(n: int) -> None:
    """Sets the pool's size, once, before any work; otherwise it has a thread for each core.

    Raises:
        ValueError: the pool already runs with another number, or n is 0.
    """

def stamps() -> int:
    """Tiles of long stages done since the process began: rises while native work lives."""

def panic_for_test(message: str) -> None:
    """Panics in native code; raises NativePanic with the message."""

def unsatisfied_row(
    curve: str,
    matrix_a: _Matrix,
    matrix_b: _Matrix,
    matrix_c: _Matrix,
    dictionary: Buffer,
    w: Scalars,
) -> int | None:
    """The first row with (A·w)(B·w) != C·w, or None."""

def lincomb(curve: str, group: str, points: Buffer, scalars: Buffer) -> bytes:
    """Σ scalars[i]·points[i] of a few points of "g1" or "g2", as one stored point.

    Raises:
        ScalarError: a scalar is not below r.
        PointError: a coordinate is not below q, or a point is off the curve; the order is not
            checked.
    """

def check_point(curve: str, group: str, point: Buffer) -> None:
    """Checks coordinates, equation and order of one stored point; PointError has index 0."""

def check_points(curve: str, group: str, points: Buffer) -> None:
    """Checks coordinates, equation and order of stored points; PointError names the first."""

def points_from_plain(curve: str, group: str, points: Buffer) -> bytes:
    """Points in the form of verifying keys, checked, as stored points; infinity is allowed.

    Raises:
        PointError: names the first that is no point of the group.
    """

def points_to_plain(curve: str, group: str, points: Buffer) -> bytes:
    """Stored points in the form of verifying keys; whether they are points is not checked."""

def from_montgomery(curve: str, field: str, data: Buffer) -> bytes:
    """value·R → value for elements of "q" or "r"; ScalarError if one is not below the modulus."""

def to_montgomery(curve: str, field: str, data: Buffer) -> bytes:
    """value → value·R for elements of "q" or "r"; ScalarError if one is not below the modulus."""

@final
class Scalars:
    """A vector of scalars in an anonymous mapping of its own."""

    @staticmethod
    def from_bytes(curve: str, data: Buffer) -> Scalars:
        """Reads canonical scalars; ScalarError names the first that is not below r."""

    def __len__(self) -> int: ...
    def to_bytes(self) -> bytes:
        """The canonical bytes, 32 a scalar."""

    @property
    def size_bytes(self) -> int:
        """Bytes mapped."""

    @property
    def curve(self) -> _Curve: ...
    def release(self) -> None:
        """Unmaps the memory as soon as no call reads it; later use raises ValueError.

        May be called again.
        """

@final
class ProvingKey:
    """A proving key, copied into native memory."""

    def __new__(
        cls,
        curve: str,
        *,
        n_public: int,
        n_wires: int,
        domain_size: int,
        family: str,
        matrix_a: _Matrix,
        matrix_b: _Matrix,
        matrix_c: _Matrix | None = None,
        dictionary: Buffer,
        queries: Mapping[str, Buffer],
    ) -> ProvingKey:
        """Copies the parts and checks that they fit together; points are not checked.

        Args:
            family: "snarkjs" or "bellperson".
            matrix_a: (row_ptr uint64 [n_rows + 1], wire uint32 [nnz], coefficient uint32 [nnz]),
                coefficients being indexes of the dictionary.
            matrix_c: omitted where C·w is (A·w)∘(B·w).
            dictionary: canonical scalars.
            queries: "a", "b1" (G1) and "b2" (G2) of n_wires points, "c" (G1) of
                n_wires - n_public - 1, "h" (G1) of domain_size (snarkjs) or domain_size - 1.

        Raises:
            KeyError: a query is missing.
            ScalarError: an element of the dictionary is not below r.
        """

    def check_points(self, query: str) -> None:
        """Checks coordinates, equation and order of every point; PointError names the first."""

    def evaluate(self, w: Scalars) -> tuple[Scalars, Scalars, Scalars | None]:
        """(A·w, B·w, C·w if C is stored), each padded with zeros to domain_size."""

    def quotient(self, a: Scalars, b: Scalars, c: Scalars | None = None) -> Scalars:
        """The scalars of the H query; takes a, b and c, which are released afterwards.

        snarkjs: domain_size evaluations of a·b - c on the odd coset. bellperson: the
        domain_size - 1 coefficients of (a·b - c)/Z. Without c it is a∘b.
        """

    def msm(self, query: str, scalars: Scalars, start: int, count: int) -> bytes:
        """Σ scalars[start + i]·query[i] for i < count, as one stored point."""

    @property
    def size_bytes(self) -> int:
        """Bytes that the key takes."""

@final
class ToxicWaste:
    """The five secrets of one trusted set-up; who knows one of them can forge proofs.

    They have no textual form and are overwritten when the set-up has used them.
    """

    @staticmethod
    def random(curve: str) -> ToxicWaste:
        """From the system's randomness."""

    @staticmethod
    def from_seed(curve: str, seed: Buffer) -> ToxicWaste:
        """Always the same for a seed: anyone who has the seed has the secrets."""

    @staticmethod
    def from_bytes(curve: str, data: Buffer) -> ToxicWaste:
        """From five canonical scalars: α, β, γ, δ, τ.

        Raises:
            ScalarError: one is not below r.
            ValueError: one is zero.
        """

@final
class Setup:
    """A trusted set-up for development: the exponents of a key and tables of multiples."""

    def __new__(
        cls,
        curve: str,
        *,
        family: str,
        n_public: int,
        n_wires: int,
        matrix_a: _Matrix,
        matrix_b: _Matrix,
        matrix_c: _Matrix,
        dictionary: Buffer,
        toxic_waste: ToxicWaste,
    ) -> Setup:
        """Computes the exponents and uses the toxic waste up.

        Args:
            family: "snarkjs" or "bellperson".
            matrix_a: as `ProvingKey` takes it, without the rows that bind public wires.
            dictionary: canonical scalars.

        Raises:
            ScalarError: an element of the dictionary is not below r.
            ValueError: the toxic waste is of another curve or was used before.
        """

    @property
    def domain_size(self) -> int:
        """The size of the key's domain."""

    def points(self) -> dict[str, bytes]:
        """alpha_g1, beta_g1, delta_g1, beta_g2, gamma_g2, delta_g2, stored."""

    def ic(self) -> bytes:
        """n_public + 1 points of G1."""

    def query(self, name: str) -> bytes:
        """Computes the points of a query: "a", "b1", "b2", "c" or "h"."""

    @property
    def size_bytes(self) -> int:
        """Bytes that exponents and tables take."""

@final
class VerifyingKey:
    """A verifying key, checked and prepared once."""

    def __new__(cls, curve: str, data: Buffer) -> VerifyingKey:
        """Parses α1, β2, γ2, δ2, uint32 count (little-endian), IC.

        Points are uncompressed, big-endian, Fp2 as c1 then c0; infinity is 0x40 and zeros on
        BLS12-381, zeros on BN254, and allowed in IC only.

        Raises:
            PointError: index 0 is α, 1 β, 2 γ, 3 δ, 4 + i is IC[i].
        """

    @property
    def n_public(self) -> int: ...
    def verify(self, statement: Buffer, proof: Buffer) -> bool:
        """Whether the proof holds for the statement (n_public scalars).

        Proofs are A, B, C: on BLS12-381 192 bytes compressed as Zcash does; on BN254 256 bytes
        as in EIP-197. Infinity is refused.

        Raises:
            ValueError: a statement of another length.
            ScalarError: an element of the statement is not below r.
            ProofError: a malformed proof.
        """

    def verify_batch(
        self, items: Sequence[tuple[Buffer, Buffer]], seed: Buffer
    ) -> list[bool | str]:
        """For each (statement, proof) whether it holds, or why it could not be read.

        Args:
            seed: 32 bytes from a CSPRNG, drawn after the proofs were received.
        """
