"""Every limit and delay of the core, in one frozen table.

Durations are nanoseconds. Tests set them; nothing sleeps. Peer deadlines (grace,
UNRESPONSIVE, STUCK, lease clocks) run on peer time, which stands still while the service
itself was stalled: see `timers.PeerClock`.
"""

from __future__ import annotations

from dataclasses import dataclass

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """Defaults of the design's table.

    Raises:
        ValueError: a limit is not positive, or a duration is negative.
    """

    beat_ns: int = 5 * SECOND_NS
    """Longest silence of a healthy prover, and the longest normal gap between two turns."""
    unresponsive_ns: int = 30 * SECOND_NS
    """No Actual for so long: no new leases there."""
    stuck_applied_ns: int = 60 * SECOND_NS
    """A Desired not taken in for so long though beats come: the stream is closed."""
    stuck_silent_ns: int = 5 * MINUTE_NS
    """No Actual for so long: the stream is closed."""
    grace_ns: int = 20 * SECOND_NS
    """How long a lease waits for its prover to come back."""
    leaving_stuck_ns: int = 60 * SECOND_NS
    """A lease LEAVING for longer no longer counts as memory that will come back."""
    lease_floor_ns: int = 5 * MINUTE_NS
    """Least timeout of a lease's clock and of FETCHING."""
    lease_factor: int = 10
    """Timeout in multiples of the expected time (or of the load time, for FETCHING)."""
    key_switch_factor: int = 0
    """Key loads that older work must outweigh before a prover switches; 0: strict order."""
    max_open_jobs: int = 10_000
    max_open_partitions: int = 200_000
    max_unsaved_records: int = 1_000
    """More records than this unsaved: submissions are refused with STORE_BEHIND."""
    refuse_retry_ns: int = 1 * SECOND_NS
    """Delay named in a refusal that a retry can help."""
    max_leases_per_session: int = 256
    """Leases not GONE on one prover, whatever it announces: the wire's bound."""
    inline_budget_bytes: int = 2 * 1024 * 1024
    """Inline inputs in one Desired; the rest is downloaded."""
    backoff_ns: tuple[int, ...] = (1 * SECOND_NS, 5 * SECOND_NS, 30 * SECOND_NS)
    """Waits before a prover that failed a partition gets it again; the last one repeats."""
    recheck_ns: tuple[int, ...] = (1 * SECOND_NS, 5 * SECOND_NS, 30 * SECOND_NS)
    """Waits before a broken check is repeated; the last one repeats."""
    poison_provers: int = 3
    poison_unverified_provers: int = 2
    poison_failures: int = 5
    quarantine_debits: int = 3
    """Standing debits at which a prover is quarantined."""
    quarantine_ns: int = 10 * MINUTE_NS
    """How long a quarantine by score lasts; one by an operator lasts until released."""
    max_crashes: int = 5
    alone_after_crashes: int = 2
    retain_ns: int = 24 * HOUR_NS
    """How long a terminal job is kept where the submitter names nothing."""
    retain_bytes: int = 1 << 30
    """Bytes of kept results; the oldest go first."""
    keep_inputs_ns: int = 1 * HOUR_NS
    """How long the inputs of a FAILED or CANCELLED job are kept."""
    max_known_provers: int = 1_024
    """Absent provers with nothing to remember are forgotten beyond this."""
    clock_mark_ns: int = 1 * SECOND_NS
    """Least distance between two persisted clock marks."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            values = value if isinstance(value, tuple) else (value,)
            if not values or any(item < 0 for item in values):
                raise ValueError(f"CoreConfig.{name} = {value!r}: must not be negative or empty")
        for name in (
            "beat_ns",
            "lease_factor",
            "max_open_jobs",
            "max_open_partitions",
            "max_unsaved_records",
            "max_leases_per_session",
            "poison_provers",
            "poison_unverified_provers",
            "poison_failures",
            "quarantine_debits",
            "max_crashes",
        ):
            if getattr(self, name) == 0:
                raise ValueError(f"CoreConfig.{name} = 0: must be positive")
