"""The values that the scheduler's core speaks: plain, frozen, without protobuf.

They mirror the messages of partita.v1 (same names, same numbers for the enumerations), so
that `api.translate` is a field-by-field copy. Sizes are bytes, times are nanoseconds of the
service's one clock (wall time at boot plus monotonic), digests are 32 raw bytes.

What is not here: the mutable tables (`tables`), the rows a store keeps (`records`), what an
API shows (`views`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Priority(IntEnum):
    """The class of a job; a greater one always goes first."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


class FailureKind(IntEnum):
    """Why a partition or a job failed; `failures` says what each does."""

    INVALID_INPUT = 1
    RESOURCE = 2
    COMPUTE = 3
    UNVERIFIED = 4
    HANDED_BACK = 5
    LOST = 6
    TIMED_OUT = 7
    INPUT_LOST = 8
    INTERNAL = 9


class Phase(IntEnum):
    """Where a held lease is on its prover."""

    UNSPECIFIED = 0
    FETCHING = 1
    SYNTHESIZING = 2
    WAITING_FOR_DEVICE = 3
    PROVING = 4
    FINISHING = 5
    CHECKING = 6
    WAITING_FOR_SYNTHESIS = 7
    FINISHED = 8
    STOPPING = 9


NATIVE_PHASES = frozenset({Phase.SYNTHESIZING, Phase.PROVING, Phase.FINISHING})
"""Phases in native code: they run a lease's clock, and losing the prover there is a crash."""


class KeyShown(IntEnum):
    """State of a proving key as a prover reports it (HeldKey.State)."""

    UNSPECIFIED = 0
    LOADING = 1
    READY = 2
    LEAVING = 3
    FAILED = 4


class Condition(IntEnum):
    """What a prover says of itself in each Actual."""

    UNSPECIFIED = 0
    READY = 1
    DRAINING = 2
    FAULTED = 3


class Mode(IntEnum):
    """What the operator wants of a prover."""

    ACTIVE = 1
    CORDONED = 2
    DRAINED = 3


class Trust(IntEnum):
    """Whether a prover's results are worth asking for."""

    TRUSTED = 1
    QUARANTINED = 2
    PROBATION = 3


class Residency(IntEnum):
    """What an operator wants of a proving key on a prover."""

    AUTO = 1
    PINNED = 2
    EVICTED = 3
    """Once, then AUTO."""


class StatementSource(IntEnum):
    """Who stated the public inputs that a proof was verified against."""

    UNSPECIFIED = 0
    SUBMITTED = 1
    INPUT = 2
    PROVER = 3


class Verdict(IntEnum):
    """The verifier's answer; UNCHECKED means that it broke, never that the proof is good."""

    VALID = 1
    INVALID = 2
    UNCHECKED = 3


class PartitionState(IntEnum):
    """The wire's states of a partition."""

    WAITING = 1
    LEASED = 2
    PROVED = 3
    DROPPED = 4


class JobState(IntEnum):
    """The core's states of a job; QUEUED and RUNNING are views (`views.PublicState`)."""

    PENDING = 1
    """Acceptance is not durable yet."""
    OPEN = 2
    ENDING = 3
    """The outcome is fixed and not durable yet."""
    ENDED = 4


class Outcome(IntEnum):
    """The one terminal outcome of a job."""

    COMPLETED = 3
    FAILED = 4
    CANCELLED = 5


@dataclass(frozen=True, slots=True)
class Bytes:
    """An amount of memory, host and device counted apart."""

    host: int = 0
    device: int = 0

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(self.host + other.host, self.device + other.device)

    def __sub__(self, other: Bytes) -> Bytes:
        return Bytes(self.host - other.host, self.device - other.device)

    def fits(self, room: Bytes) -> bool:
        """Tell whether both components are within `room`."""
        return self.host <= room.host and self.device <= room.device

    def most(self, other: Bytes) -> Bytes:
        """Return the component-wise maximum."""
        return Bytes(max(self.host, other.host), max(self.device, other.device))

    def least(self, other: Bytes) -> Bytes:
        """Return the component-wise minimum."""
        return Bytes(min(self.host, other.host), min(self.device, other.device))


NOTHING = Bytes()


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A blob by digest; `size_bytes` is its exact length."""

    sha256: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of a partition, or the reason a job ended."""

    kind: FailureKind
    reason: str
    detail: str = ""
    prover_id: str = ""
    attempt: int = 0
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations of one partition in nanoseconds; 0 where unknown."""

    queue_ns: int = 0
    fetch_ns: int = 0
    key_load_ns: int = 0
    synthesis_ns: int = 0
    device_ns: int = 0
    verify_ns: int = 0
    total_ns: int = 0


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The build of a prover: shown and compared, never a gate here."""

    version: str = ""
    commit: str = ""
    code_sha256: bytes = b""
    kernels_sha256: bytes = b""
    native_sha256: bytes = b""
    backend: str = ""
    device: str = ""
    driver: str = ""
    runtime: str = ""


@dataclass(frozen=True, slots=True)
class CircuitOffer:
    """What a prover says one circuit costs it. `peak` is a lease's most, key excluded."""

    circuit_id: str
    manifest_sha256: bytes
    key: Bytes = NOTHING
    peak: Bytes = NOTHING
    after_release: Bytes = NOTHING
    input_formats: tuple[str, ...] = ()
    unusable_reason: str = ""
    load_time_ns: int = 0
    expected_ns: int = 0


@dataclass(frozen=True, slots=True)
class Hello:
    """A prover's introduction; sent again when its offers change."""

    prover_id: str
    instance_id: str
    total: Bytes
    max_leases: int
    express_leases: int = 1
    highest_epoch: int = 0
    offers: tuple[CircuitOffer, ...] = ()
    features: tuple[str, ...] = ()
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    labels: tuple[tuple[str, str], ...] = ()
    contract_min: int = 0
    contract_max: int = 0


@dataclass(frozen=True, slots=True)
class Proved:
    """A lease's proof, unverified; `statement` only when the lease asked for it."""

    proof: bytes
    statement: bytes = b""
    timings: Timings = field(default_factory=Timings)
    peak: Bytes = NOTHING


@dataclass(frozen=True, slots=True)
class HeldLease:
    """One lease in an Actual. `held` is the most it may still occupy."""

    lease_id: str
    job_id: str
    partition_index: int
    attempt: int
    phase: Phase
    held: Bytes
    permille: int = 0
    outcome: Proved | Failure | None = None


@dataclass(frozen=True, slots=True)
class HeldKey:
    """One proving key in an Actual."""

    manifest_sha256: bytes
    state: KeyShown
    held: Bytes
    references: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Actual:
    """Everything a prover holds; `applied` is the last Desired revision fully taken in."""

    applied: int
    condition: Condition = Condition.READY
    reason: str = ""
    leases: tuple[HeldLease, ...] = ()
    keys: tuple[HeldKey, ...] = ()
    measured: Bytes = NOTHING


@dataclass(frozen=True, slots=True)
class LeaseOrder:
    """One lease in a Desired: all that a prover needs to prove one partition."""

    lease_id: str
    job_id: str
    partition_index: int
    attempt: int
    circuit_id: str
    manifest_sha256: bytes
    input: BlobRef
    input_format: str
    priority: Priority
    job_seq: int
    reserved: Bytes
    timeout_ns: int
    diagnose: bool
    statement_sha256: bytes
    """Empty: the prover returns its own statement."""
    inline: bytes | None


@dataclass(frozen=True, slots=True)
class Desired:
    """The leases and keys a prover should hold: whole sets, never differences."""

    epoch: int
    revision: int
    leases: tuple[LeaseOrder, ...]
    keys: tuple[bytes, ...]
    drain: bool
    catalogue_revision: bytes


@dataclass(frozen=True, slots=True)
class CircuitInfo:
    """What the core knows of a circuit in the catalogue."""

    circuit_id: str
    manifest_sha256: bytes
    input_formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One partition as submitted: one input, at most one statement."""

    input: BlobRef
    inline: bytes | None = None
    """The input itself where it is small enough to live in the job's row."""
    statement: bytes | None = None
    statement_source: StatementSource = StatementSource.UNSPECIFIED
    """SUBMITTED or INPUT where `statement` is given; UNSPECIFIED lets the prover state it."""


@dataclass(frozen=True, slots=True)
class CrashMark:
    """A stream lost while the partition was in native code; void if the instance returns."""

    lease_id: str
    prover_id: str
    instance_id: str
    time_ns: int
