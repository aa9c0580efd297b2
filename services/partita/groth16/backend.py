"""What a Groth16 backend is: the stages of a proof as operations, without the algorithm.

`partita.groth16.prover` writes the algorithm once against these protocols. A backend owns how
vectors are stored, what runs in parallel and when; a result that may still be under way is a
`Pending`. All backends return the same bytes for the same inputs.

Bytes that cross this line: scalars are 32 bytes, canonical, little-endian; points are in device
form (`partita.groth16.points`). Backends raise the errors of `partita.groth16.errors` only:
InputError for bytes that are wrong, ResourceError where memory was refused, ComputeError for a
panic or a device fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class KeyHead:
    """What the prover needs of a key beside its queries and matrices: counts and single points.

    The fields mean what they mean in `ProvingKey`; points are in device form.
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
    delta_g2: bytes

    @classmethod
    def of(cls, key: ProvingKey) -> KeyHead:
        """The head of a key; keeps no reference to its queries."""
        return cls(
            key.curve,
            key.family,
            key.n_public,
            key.n_wires,
            key.domain_size,
            key.alpha_g1,
            key.beta_g1,
            key.delta_g1,
            key.beta_g2,
            key.delta_g2,
        )

    def count(self, query: Query) -> int:
        """The number of points of a query."""
        match query:
            case Query.A | Query.B1 | Query.B2:
                return self.n_wires
            case Query.C:
                return self.n_wires - self.n_public - 1
            case Query.H:
                return self.domain_size - (0 if self.family is KeyFamily.SNARKJS else 1)


class Pending(Protocol[T_co]):
    """A result that may still be under way."""

    def result(self) -> T_co:
        """Wait for the result; raises what the operation raised."""
        ...


@dataclass(frozen=True, slots=True)
class Ready(Pending[T_co]):
    """A result that is there already."""

    value: T_co

    def result(self) -> T_co:
        """The value."""
        return self.value


class Vector(Protocol):
    """A vector of scalars in the backend's own memory and form."""

    def __len__(self) -> int:
        """The number of scalars."""
        ...

    def release(self) -> None:
        """Give the memory back now; a second call does nothing."""
        ...


class LoadedKey(Protocol):
    """A proving key resident in a backend.

    Vectors go only into operations of the key that made them. Operations on one key are called
    from one thread at a time.
    """

    @property
    def head(self) -> KeyHead:
        """Counts and single points."""
        ...

    @property
    def size_bytes(self) -> int:
        """Host bytes the key holds, matrices included."""
        ...

    def witness(self, values: bytes | memoryview) -> Vector:
        """Take in a witness: n_wires x 32 bytes, canonical.

        Raises:
            EncodingError: names the first `witness[i]` that is not below r.
        """
        ...

    def evaluate(self, witness: Vector) -> tuple[Vector, Vector, Vector | None]:
        """A·w, B·w and C·w, each domain_size scalars, zero beyond the rows.

        The third is None where the family has c = a∘b.
        """
        ...

    def quotient(self, a: Vector, b: Vector, c: Vector | None) -> Vector:
        """The scalars of the H query (`KeyHead.count` of them); consumes a, b and c.

        When it returns, the memory of the three is given back or holds the result.
        """
        ...

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        """The sum of scalars[start + i] · query[i] over 0 <= i < count, in device form.

        Args:
            query: the points, at least count of them.
            scalars: not consumed.
            start: the index of the first scalar.
            count: the number of terms; 0 gives infinity.
        """
        ...

    def release(self) -> None:
        """Give the key's memory back now; a second call does nothing."""
        ...


class Backend(Protocol):
    """A way to compute the stages."""

    @property
    def name(self) -> str:
        """Its name in configuration: "reference", "native"."""
        ...

    def load(self, key: ProvingKey, *, check: bool) -> LoadedKey:
        """Make a key resident.

        Args:
            key: its counts, lengths and indexes are always checked (`key_checks.check_shape`).
            check: also check every point for curve and subgroup: needed unless the digest of
                the source is known and trusted.

        Raises:
            InputError: the key is malformed; the text names the query and the index.
            ResourceError: the memory was refused.
        """
        ...

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        """The sum of scalars[i] · points[i] for a handful of points of "g1" or "g2".

        Points in device form, scalars in [0, r); the result in device form. Not constant-time
        unless the backend says so.
        """
        ...

    def check_rows(self, r1cs: R1cs, witness: Witness) -> int | None:
        """The first row of a constraint system that a witness breaks, or None.

        Raises:
            InputError: the two are of different curves or sizes, or a value is not below r.
        """
        ...
