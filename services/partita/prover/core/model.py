"""The values that the prover's core speaks: plain, frozen, without protobuf.

They mirror the messages of partita.v1 that a prover reads and writes (same names, same numbers
for the enumerations), so that `prover.translate` is a field-by-field copy. Sizes are bytes,
times are nanoseconds of the process's one clock, digests are 32 raw bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class CoreBug(Exception):  # noqa: N818  (a bug is no error of a caller)
    """An invariant of the core does not hold, or the shell broke its contract."""


class Priority(IntEnum):
    """The class of a job; a greater one always goes first."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


class FailureKind(IntEnum):
    """Why a lease failed; the scheduler decides what each kind does."""

    INVALID_INPUT = 1
    RESOURCE = 2
    COMPUTE = 3
    HANDED_BACK = 5
    INPUT_LOST = 8
    INTERNAL = 9


class Phase(IntEnum):
    """Where a held lease is."""

    FETCHING = 1
    SYNTHESIZING = 2
    WAITING_FOR_DEVICE = 3
    PROVING = 4
    FINISHING = 5
    WAITING_FOR_SYNTHESIS = 7
    FINISHED = 8
    STOPPING = 9


class KeyState(IntEnum):
    """Where a proving key is."""

    LOADING = 1
    READY = 2
    LEAVING = 3
    FAILED = 4


class Condition(IntEnum):
    """What the prover says of itself."""

    READY = 1
    DRAINING = 2
    FAULTED = 3


@dataclass(frozen=True, slots=True)
class Bytes:
    """An amount of memory, host and device counted apart."""

    host: int = 0
    device: int = 0

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(self.host + other.host, self.device + other.device)

    def fits(self, room: Bytes) -> bool:
        """Tell whether both components are within `room`."""
        return self.host <= room.host and self.device <= room.device

    def least(self, other: Bytes) -> Bytes:
        """Return the component-wise minimum."""
        return Bytes(min(self.host, other.host), min(self.device, other.device))


NOTHING = Bytes()


def total_of(amounts: list[Bytes]) -> Bytes:
    """Return the sum of amounts."""
    return Bytes(sum(a.host for a in amounts), sum(a.device for a in amounts))


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A blob by digest; `size_bytes` is its exact length."""

    sha256: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a lease ended without a proof."""

    kind: FailureKind
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations of one lease in nanoseconds; 0 where it did not wait."""

    fetch_ns: int = 0
    key_load_ns: int = 0
    synthesis_ns: int = 0
    device_ns: int = 0
    total_ns: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """How a lease ended well; `statement` only when the lease asked for it."""

    proof: bytes
    statement: bytes = b""
    timings: Timings = Timings()
    peak: Bytes = NOTHING


@dataclass(frozen=True, slots=True)
class LeaseOrder:
    """One lease of a Desired: all that it takes to prove one partition."""

    lease_id: str
    job_id: str
    partition_index: int
    attempt: int
    circuit_id: str
    manifest_sha256: bytes
    input: BlobRef
    input_format: str
    priority: Priority = Priority.NORMAL
    job_seq: int = 0
    reserved: Bytes = NOTHING
    diagnose: bool = False
    statement_sha256: bytes = b""
    """Empty: the prover returns its own statement."""
    inline: bytes = b""

    @property
    def key(self) -> tuple[int, int, int, str]:
        """What orders both queues, least first; the lease_id only breaks ties."""
        return (-self.priority, self.job_seq, self.partition_index, self.lease_id)


@dataclass(frozen=True, slots=True)
class Desired:
    """The leases and keys to hold: whole sets, never differences."""

    epoch: int
    revision: int
    leases: tuple[LeaseOrder, ...] = ()
    keys: tuple[bytes, ...] = ()
    drain: bool = False
    catalogue_revision: bytes = b""


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
    outcome: Proof | Failure | None = None


@dataclass(frozen=True, slots=True)
class HeldKey:
    """One proving key in an Actual; `references` counts leases whose memory is not given back."""

    manifest_sha256: bytes
    state: KeyState
    held: Bytes
    references: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Actual:
    """Everything the prover holds; `applied` is the last Desired revision fully taken in."""

    applied: int = 0
    condition: Condition = Condition.READY
    reason: str = ""
    leases: tuple[HeldLease, ...] = ()
    keys: tuple[HeldKey, ...] = ()


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """The limits of one prover.

    Attributes:
        total: memory for keys and leases, the express lease included.
        synthesis_threads: threads that take any lease; one more takes CRITICAL ones only.
        grace_ns: from the start of a drain until what is left is handed back.
        fault_grace_ns: from a fault until the process exits although leases are still held.
        orphan_ttl_ns: how long an outcome is kept while no scheduler is connected.
    """

    total: Bytes
    synthesis_threads: int = 1
    grace_ns: int = 600 * 10**9
    fault_grace_ns: int = 3 * 10**9
    orphan_ttl_ns: int = 3600 * 10**9


EXIT_DRAINED = 0
EXIT_FAULTED = 70
