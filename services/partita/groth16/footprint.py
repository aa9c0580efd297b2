"""How much memory and time a backend takes for a circuit, as formulas over its counts.

The scheduler treats the results as numbers; provers announce them and report what they measured.
They are upper bounds for memory (a test compares the key with what native code holds) and rough
estimates for time, right for scalars of full width and too long for witnesses of bits.

With W = 32·n_wires, M = 32·domain_size and P1, P2 the bytes of a point of G1, G2, the native
backend holds:

* key: queries (2·n_wires + C + H points of P1, n_wires of P2), matrices (8 bytes a row pointer,
  8 an entry), dictionary (32 a coefficient), twiddles of the domain (M);
* while loading, beside it: the matrices and the dictionary as they were read (queries are views
  of a mapped file);
* of a proof: the witness as it arrived and as scalars (2·W); a, b, c over the domain (3·M) until
  the quotient, which lies in a's memory (M) and leaves the rest free; then the scratch of the
  largest sum: bytes a point, bounded by the chunk that the extension hands over at once, and a
  table of buckets for each core.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.keys import KeyFamily, ProvingKey

_PAGE_SLACK_BYTES = 2 << 20  # mappings round up to pages, huge ones where the kernel gives them
_CHUNK_POINTS = {  # the extension's MSM_CHUNK
    "bn254": {"g1": 1 << 19, "g2": 1 << 18},
    "bls12-381": {"g1": 1 << 20, "g2": 1 << 19},
}

# Scratch of one sum, in bytes a point and in bytes a core. The first: pointers and limbs of the
# kept terms and, on BN254, the copies in arkworks' own form and its digits. The second: buckets.
# Fitted to sums of 2^18 to 2^20 full-width scalars on two cores, freed blocks going back to the
# system at once (`prover.memory`).
_MSM_SCRATCH = {
    "bn254": {"g1": 400, "g2": 528},
    "bls12-381": {"g1": 54, "g2": 48},
}
_BUCKETS_BYTES_PER_CORE = {"g1": 4 << 20, "g2": 10 << 20}
_PROOF_SLACK_BYTES = 12 << 20  # stacks, small blocks, what a first proof leaves: 10 MiB at most

# Nanoseconds on one core: a term of a sum in G1 and G2, and an element of a transform times the
# logarithm of its length; measured as above.
_NATIVE_NS = {"bn254": (8_000, 23_000, 20), "bls12-381": (9_000, 24_000, 20)}
_REFERENCE_NS = {
    "bn254": (3_000_000, 8_000_000, 1_500),
    "bls12-381": (4_000_000, 13_000_000, 1_500),
}
_LOAD_NS_PER_BYTE = 5

# Nanoseconds on one core: curve and subgroup of a point of G1 and G2, and an entry of a matrix.
_CHECK_NS = {"bn254": (300, 120_000), "bls12-381": (40_000, 60_000)}
_PACK_NS_PER_ENTRY = 500

_PYTHON_INT_BYTES = 72  # a field element as an int, with its slot in a list
_PYTHON_POINT_BYTES = {"g1": 240, "g2": 500}


@dataclass(frozen=True, slots=True)
class CircuitShape:
    """The counts of a circuit that memory and time depend on.

    Attributes:
        curve, family: as in the proving key.
        n_public, n_wires, domain_size: as in the proving key.
        n_rows: rows of the matrices, those that bind public wires included.
        n_matrices: 2 where the family has c = a∘b, else 3.
        n_entries: non-zero entries of all stored matrices together.
        n_coefficients: distinct ones.
    """

    curve: str
    family: KeyFamily
    n_public: int
    n_wires: int
    domain_size: int
    n_rows: int
    n_matrices: int
    n_entries: int
    n_coefficients: int

    @classmethod
    def of(cls, key: ProvingKey) -> CircuitShape:
        """The shape of a key."""
        matrices = [m for m in (key.matrix_a, key.matrix_b, key.matrix_c) if m is not None]
        return cls(
            key.curve,
            key.family,
            key.n_public,
            key.n_wires,
            key.domain_size,
            key.matrix_a.n_rows,
            len(matrices),
            sum(len(m.wire) for m in matrices),
            len(key.dictionary) // SCALAR_SIZE_BYTES,
        )

    @property
    def n_points_g1(self) -> int:
        """Points of the queries A, B1, C and H."""
        n_h = self.domain_size - (0 if self.family is KeyFamily.SNARKJS else 1)
        return 3 * self.n_wires - self.n_public - 1 + n_h

    @property
    def matrices_size_bytes(self) -> int:
        """Row pointers, entries and dictionary."""
        return (
            8 * self.n_matrices * (self.n_rows + 1)
            + 8 * self.n_entries
            + SCALAR_SIZE_BYTES * self.n_coefficients
        )


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one circuit takes on one prover.

    Attributes:
        key_host_bytes: the resident key, matrices included.
        load_host_bytes: the most while the key is being loaded, the key included.
        peak_host_bytes: the most one proof takes, its input included, the key not.
        after_release_host_bytes: the most it takes once a, b and c are given back.
        load_ns: the expected time of a load of the packed key from a warm disk.
        pack_ns: the expected time of packing it first, every point checked.
        expected_ns: the expected time of a proof on an idle machine.
    """

    key_host_bytes: int
    load_host_bytes: int
    peak_host_bytes: int
    after_release_host_bytes: int
    load_ns: int
    pack_ns: int
    expected_ns: int


def footprint(backend_name: str, shape: CircuitShape, *, cores: int) -> Footprint:
    """The footprint of a circuit on a backend.

    Args:
        backend_name: "native" or "reference".
        shape: the circuit's counts.
        cores: cores the backend may use; the reference uses one.

    Raises:
        MismatchError: an unknown backend or curve.
    """
    match backend_name:
        case "native":
            return _native(shape, cores)
        case "reference":
            return _reference(shape)
    raise MismatchError("backend", "native or reference", backend_name)


def _native(shape: CircuitShape, cores: int) -> Footprint:
    curve = curve_named(shape.curve)
    key = (
        shape.n_points_g1 * curve.g1.point_size_bytes
        + shape.n_wires * curve.g2.point_size_bytes
        + shape.matrices_size_bytes
        + SCALAR_SIZE_BYTES * shape.domain_size
        + _PAGE_SLACK_BYTES
    )
    witness = SCALAR_SIZE_BYTES * shape.n_wires
    rows = SCALAR_SIZE_BYTES * shape.domain_size
    longest = max(shape.n_wires, shape.domain_size)
    # A small sum has small windows: its tables do not outgrow its terms.
    scratch = max(
        per_point * min(longest, _CHUNK_POINTS[shape.curve][group])
        + cores * min(_BUCKETS_BYTES_PER_CORE[group], 256 * longest)
        for group, per_point in _MSM_SCRATCH[shape.curve].items()
    )
    after_release = 2 * witness + rows + scratch + _PROOF_SLACK_BYTES
    return Footprint(
        key_host_bytes=key,
        load_host_bytes=key + shape.matrices_size_bytes,
        peak_host_bytes=max(2 * witness + 3 * rows + _PROOF_SLACK_BYTES, after_release),
        after_release_host_bytes=after_release,
        load_ns=_LOAD_NS_PER_BYTE * key,
        pack_ns=_pack_ns(shape, cores),
        expected_ns=_time_ns(shape, _NATIVE_NS[shape.curve]) // cores,
    )


def _reference(shape: CircuitShape) -> Footprint:
    key = (
        shape.n_points_g1 * _PYTHON_POINT_BYTES["g1"]
        + shape.n_wires * _PYTHON_POINT_BYTES["g2"]
        + shape.matrices_size_bytes
        + _PYTHON_INT_BYTES * (shape.n_coefficients + 2 * shape.n_entries + 2 * shape.n_rows)
        + _PAGE_SLACK_BYTES
    )
    witness = (SCALAR_SIZE_BYTES + _PYTHON_INT_BYTES) * shape.n_wires
    # Recursive transforms hold about three copies of a vector on their way down.
    rows = _PYTHON_INT_BYTES * shape.domain_size
    after_release = witness + rows + _PAGE_SLACK_BYTES
    return Footprint(
        key_host_bytes=key,
        load_host_bytes=key + shape.matrices_size_bytes,
        peak_host_bytes=after_release + 9 * rows,
        after_release_host_bytes=after_release,
        load_ns=1_000 * _LOAD_NS_PER_BYTE * shape.n_wires,
        pack_ns=_pack_ns(shape, 1),
        expected_ns=_time_ns(shape, _REFERENCE_NS[shape.curve]),
    )


def _pack_ns(shape: CircuitShape, cores: int) -> int:
    """Points are checked by the extension whatever the backend is; the rest is writing."""
    point_g1, point_g2 = _CHECK_NS[shape.curve]
    points = shape.n_points_g1 * point_g1 + shape.n_wires * point_g2
    return points // cores + _PACK_NS_PER_ENTRY * shape.n_entries


def _time_ns(shape: CircuitShape, costs: tuple[int, int, int]) -> int:
    """Sums of all queries and seven transforms on one core."""
    term_g1, term_g2, element = costs
    transforms = 7 * shape.domain_size * shape.domain_size.bit_length()
    return shape.n_points_g1 * term_g1 + shape.n_wires * term_g2 + transforms * element
