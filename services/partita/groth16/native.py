"""The native backend: every stage in Rust, on all cores, without the interpreter lock.

The only module that imports `partita_native`. It adds no arithmetic: it hands bytes over, names
what came back wrong, and turns the extension's exceptions into those of
`partita.groth16.errors`: a panic is a ComputeError, a refused allocation a ResourceError, a
malformed point, scalar or proof an EncodingError that names it.

The extension works through all cores inside one call, so results are ready when a call returns.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import partita_native

from partita.groth16.backend import KeyHead, Pending, Ready, Vector
from partita.groth16.curves import SCALAR_SIZE_BYTES
from partita.groth16.errors import ComputeError, EncodingError, FormatError, ResourceError
from partita.groth16.key_checks import check_rows_input, check_shape
from partita.groth16.keys import KeyFamily, ProvingKey, Query, SparseMatrix
from partita.groth16.r1cs import R1cs
from partita.groth16.witness import Witness

_VK_HEAD = ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2")


def build_info() -> Mapping[str, str]:
    """What the extension says of its own build: versions and features by name."""
    return partita_native.build_info()


def set_threads(count: int) -> None:
    """The number of threads of the extension's pool; once, before the first heavy call."""
    with _translated("threads"):
        partita_native.set_threads(count)


def stamps() -> int:
    """A counter that rises while native work makes progress: what a watchdog looks at."""
    return partita_native.stamps()


class NativeKey:
    """A proving key in the extension's own mappings."""

    def __init__(self, key: ProvingKey, *, check: bool) -> None:
        check_shape(key)
        self._head = KeyHead.of(key)
        with _translated("proving key"):
            self._key: partita_native.ProvingKey | None = partita_native.ProvingKey(
                key.curve,
                n_public=key.n_public,
                n_wires=key.n_wires,
                domain_size=key.domain_size,
                family=key.family.value,
                matrix_a=_csr(key.matrix_a),
                matrix_b=_csr(key.matrix_b),
                matrix_c=None if key.matrix_c is None else _csr(key.matrix_c),
                dictionary=key.dictionary,
                queries={query.value: points for query, points in key.queries.items()},
            )
        if check:
            self._check_points(key)

    @property
    def head(self) -> KeyHead:
        """See `LoadedKey.head`."""
        return self._head

    @property
    def size_bytes(self) -> int:
        """See `LoadedKey.size_bytes`."""
        return self._loaded.size_bytes

    def witness(self, values: bytes | memoryview) -> partita_native.Scalars:
        """See `LoadedKey.witness`."""
        with _translated("witness"):
            return partita_native.Scalars.from_bytes(self._head.curve, values)

    def evaluate(
        self, witness: Vector
    ) -> tuple[partita_native.Scalars, partita_native.Scalars, partita_native.Scalars | None]:
        """See `LoadedKey.evaluate`."""
        with _translated("witness"):
            return self._loaded.evaluate(_scalars(witness))

    def quotient(self, a: Vector, b: Vector, c: Vector | None) -> partita_native.Scalars:
        """See `LoadedKey.quotient`."""
        with _translated("quotient"):
            return self._loaded.quotient(
                _scalars(a), _scalars(b), None if c is None else _scalars(c)
            )

    def msm(self, query: Query, scalars: Vector, start: int, count: int) -> Pending[bytes]:
        """See `LoadedKey.msm`."""
        with _translated(f"query {query.value}"):
            return Ready(self._loaded.msm(query.value, _scalars(scalars), start, count))

    def release(self) -> None:
        """See `LoadedKey.release`."""
        self._key = None

    @property
    def _loaded(self) -> partita_native.ProvingKey:
        if self._key is None:
            raise ValueError("the key was released")
        return self._key

    def _check_points(self, key: ProvingKey) -> None:
        for name, group, point in (
            ("alpha_g1", "g1", key.alpha_g1),
            ("beta_g1", "g1", key.beta_g1),
            ("delta_g1", "g1", key.delta_g1),
            ("beta_g2", "g2", key.beta_g2),
            ("gamma_g2", "g2", key.gamma_g2),
            ("delta_g2", "g2", key.delta_g2),
        ):
            check_point(key.curve, group, point, name)
        size = len(key.alpha_g1)
        for i in range(key.n_public + 1):
            check_point(key.curve, "g1", key.ic[i * size : (i + 1) * size], f"ic[{i}]")
        for query in Query:
            with _translated(f"query {query.value}"):
                self._loaded.check_points(query.value)


class NativeBackend:
    """See `partita.groth16.backend.Backend`."""

    name = "native"

    def load(self, key: ProvingKey, *, check: bool) -> NativeKey:
        """See `Backend.load`."""
        return NativeKey(key, check=check)

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        """See `Backend.lincomb`."""
        encoded = b"".join(s.to_bytes(SCALAR_SIZE_BYTES, "little") for s in scalars)
        with _translated("points"):
            return partita_native.lincomb(curve, group, b"".join(points), encoded)

    def check_rows(self, r1cs: R1cs, witness: Witness) -> int | None:
        """See `Backend.check_rows`."""
        check_rows_input(r1cs, witness)
        with _translated("witness"):
            values = partita_native.Scalars.from_bytes(r1cs.curve, witness.values)
            try:
                return partita_native.unsatisfied_row(
                    r1cs.curve,
                    _csr(r1cs.matrix_a),
                    _csr(r1cs.matrix_b),
                    _csr(r1cs.matrix_c),
                    r1cs.dictionary,
                    values,
                )
            finally:
                values.release()


class NativeVerifyingKey:
    """A verifying key parsed and prepared by the extension.

    Args:
        curve: the name of the curve.
        data: the binary form of `VerifyingKey.to_bytes`.

    Raises:
        FormatError, EncodingError: the bytes are malformed; points are always checked.
    """

    def __init__(self, curve: str, data: bytes) -> None:
        with _translated("verifying key", _vk_point):
            self._key = partita_native.VerifyingKey(curve, data)

    def verify(self, statement: bytes, proof: bytes) -> bool:
        """Whether a proof holds for a statement.

        Raises:
            EncodingError, FormatError: the proof or the statement is malformed.
        """
        with _translated("statement"):
            return self._key.verify(statement, proof)

    def verify_batch(self, items: Sequence[tuple[bytes, bytes]]) -> list[bool | str]:
        """For each (statement, proof): whether it holds, or why it is malformed."""
        with _translated("batch"):
            return self._key.verify_batch(items, secrets.token_bytes(32))


class ToxicWaste:
    """The secrets of one trusted set-up of a curve, kept in native memory.

    They have no textual form, are used up by one set-up, and are overwritten then.
    """

    def __init__(self, secrets: partita_native.ToxicWaste) -> None:
        self.native = secrets

    @classmethod
    def random(cls, curve: str) -> ToxicWaste:
        """From the system's randomness."""
        with _translated("toxic waste"):
            return cls(partita_native.ToxicWaste.random(curve))

    @classmethod
    def from_seed(cls, curve: str, seed: bytes) -> ToxicWaste:
        """Always the same for one seed: anyone who has the seed can forge proofs."""
        with _translated("toxic waste"):
            return cls(partita_native.ToxicWaste.from_seed(curve, seed))

    @classmethod
    def from_scalars(cls, curve: str, scalars: Sequence[int]) -> ToxicWaste:
        """From known values: alpha, beta, gamma, delta, tau, none of them zero."""
        encoded = b"".join(s.to_bytes(SCALAR_SIZE_BYTES, "little") for s in scalars)
        with _translated("toxic waste"):
            return cls(partita_native.ToxicWaste.from_bytes(curve, encoded))


class NativeSetup:
    """The exponents of a system's key in native memory; points are computed when asked for.

    Args:
        r1cs: the system, checked by the caller.
        family: the conventions of the key.
        toxic_waste: used up.

    Raises:
        FormatError: the toxic waste is of another curve, was used before, or lies in the domain.
        ResourceError: memory was refused.
    """

    def __init__(self, r1cs: R1cs, family: KeyFamily, toxic_waste: ToxicWaste) -> None:
        with _translated("set-up"):
            self._setup = partita_native.Setup(
                r1cs.curve,
                family=family.value,
                n_public=r1cs.n_public,
                n_wires=r1cs.n_wires,
                matrix_a=_csr(r1cs.matrix_a),
                matrix_b=_csr(r1cs.matrix_b),
                matrix_c=_csr(r1cs.matrix_c),
                dictionary=r1cs.dictionary,
                toxic_waste=toxic_waste.native,
            )

    @property
    def domain_size(self) -> int:
        """The size of the key's domain."""
        return self._setup.domain_size

    def points(self) -> dict[str, bytes]:
        """The single points by the names that `ProvingKey` gives them."""
        return self._setup.points()

    def ic(self) -> bytes:
        """The points of IC."""
        with _translated("IC"):
            return self._setup.ic()

    def query(self, query: Query) -> bytes:
        """The points of a query."""
        with _translated(f"query {query.value}"):
            return self._setup.query(query.value)


def check_point(curve: str, group: str, point: bytes, where: str) -> None:
    """Raise EncodingError naming `where` unless a device form is a point of the group."""
    with _translated(where, lambda _: where):
        partita_native.check_point(curve, group, point)


def check_points(
    curve: str, group: str, points: bytes | memoryview, where: str, first: int = 0
) -> None:
    """Raise EncodingError for the first device form that is no point of the group.

    Args:
        curve: the name of the curve.
        group: "g1" or "g2".
        points: device forms, concatenated.
        where, first: the first point is called `where[first]` in errors.
    """
    with _translated(where, lambda index: f"{where}[{first + index}]"):
        partita_native.check_points(curve, group, points)


def points_from_uncompressed(
    curve: str, group: str, points: bytes | memoryview, where: Callable[[int], str]
) -> bytes:
    """Points of the uncompressed form (`partita.groth16.encodings`) in device form, all checked.

    Args:
        curve: the name of the curve.
        group: "g1" or "g2".
        points: concatenated.
        where: the name of point i in errors.

    Raises:
        EncodingError: the first that is no point of the group; infinity is one.
    """
    with _translated("points", where):
        return partita_native.points_from_plain(curve, group, points)


def points_to_uncompressed(curve: str, group: str, points: bytes | memoryview) -> bytes:
    """The inverse of `points_from_uncompressed`; the points are not checked."""
    with _translated("points"):
        return partita_native.points_to_plain(curve, group, points)


def _csr(matrix: SparseMatrix) -> tuple[memoryview, memoryview, memoryview]:
    return (
        np.ascontiguousarray(matrix.row_ptr, dtype="<u8").data,
        np.ascontiguousarray(matrix.wire, dtype="<u4").data,
        np.ascontiguousarray(matrix.coefficient, dtype="<u4").data,
    )


def _scalars(vector: Vector) -> partita_native.Scalars:
    if not isinstance(vector, partita_native.Scalars):
        raise TypeError(f"{type(vector).__name__} is a vector of another backend")
    return vector


def _vk_point(index: int) -> str:
    name = _VK_HEAD[index] if index < len(_VK_HEAD) else f"ic[{index - len(_VK_HEAD)}]"
    return f"verifying key {name}"


@contextmanager
def _translated(where: str, element: Callable[[int], str] | None = None) -> Iterator[None]:
    """Run a native call.

    Args:
        where: the name of the bytes that an error is about.
        element: the name of their element i, if it is not `where[i]`.
    """
    try:
        yield
    except partita_native.NativePanic as error:
        raise ComputeError(f"native code panicked: {error}") from error
    except (partita_native.PointError, partita_native.ScalarError) as error:
        index, why = error.args
        raise EncodingError(element(index) if element else f"{where}[{index}]", why) from error
    except partita_native.ProofError as error:
        name, why = error.args
        if name == "length":
            raise FormatError("proof", why) from error
        raise EncodingError(f"proof.{name.lower()}", why) from error
    except MemoryError as error:
        raise ResourceError(str(error)) from error
    except ValueError as error:
        raise FormatError(where, str(error)) from error
