"""Configuration of the scheduler: addresses, bounds and every default of its core.

`SchedulerConfig.core()` is the frozen table the core takes; the fields of that table appear here
under the same names without their unit suffix, so that files write durations and sizes with units.
"""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from partita.scheduler.core.config import CoreConfig
from partita.service.config import Address, Duration, Folder, HttpAddress, ProgramConfig, Size
from partita.service.logs import LEVELS
from partita.service.paths import default_data_dir
from partita.service.sizes import format_duration, format_size

MAX_INLINE_BYTES = 64 * 1024
"""The wire's bound of an inline input."""

_CORE = CoreConfig()


class SchedulerConfig(ProgramConfig):
    """The table [scheduler]; durations are nanoseconds and sizes bytes once loaded."""

    table: ClassVar[str] = "scheduler"

    data_dir: Folder = Field(
        default_factory=default_data_dir,
        description="Where circuits, blobs and the store live; one scheduler owns it.",
    )
    listen: Address = Field(
        "127.0.0.1:9830", description="Address for clients: host:port or unix:///path."
    )
    prover_listen: Address = Field(
        "127.0.0.1:9831", description="Address for provers: host:port or unix:///path."
    )
    metrics_listen: HttpAddress = Field(
        "127.0.0.1:9832",
        description="Address of /metrics, /healthz and /readyz over HTTP: host:port; empty = none.",
    )
    allow_plaintext: tuple[str, ...] = Field(
        (),
        description="Networks (CIDR) whose addresses may be listened on without TLS.",
    )
    log_level: str = Field("info", description="debug, info, warning or error.")
    allow_prover_statements: bool = Field(
        True,
        description="Accept circom.json jobs without a statement: the prover then states it.",
    )
    max_blob: Size = Field(1 << 30, gt=0, description="The largest blob a client may upload.")
    blob_quota: Size = Field(64 << 30, gt=0, description="All blobs together; more is refused.")
    max_uploads: int = Field(8, gt=0, description="Uploads that are read at the same time.")
    max_waiting_uploads: int = Field(
        64, ge=0, description="Uploads that wait for their turn; more are refused."
    )
    blob_ticket: Duration = Field(
        600 * 10**9, description="How long an uploaded blob waits for a job that names it."
    )
    stall: Duration = Field(
        60 * 10**9,
        gt=0,
        description="How long an upload or a new stream may say nothing before it is ended.",
    )
    catalogue_scan: Duration = Field(
        10**9, gt=0, description="How often the folder of circuits is looked at."
    )
    store_retry: Duration = Field(
        500_000_000, gt=0, description="Pause before a failed write of the store is tried again."
    )
    stop_grace: Duration = Field(
        5 * 10**9, description="How long running calls may take after a request to stop."
    )
    fingerprint_gate: Literal["report", "exact"] = Field(
        "report",
        description='A prover of another build: "report" tells it, "exact" refuses the prover.',
    )
    build_check: Duration = Field(
        30 * 10**9,
        gt=0,
        description="How often the installed files are compared with those that run.",
    )
    check_invariants: bool = Field(
        False, description="Check the core's invariants after every step; slow, for diagnosis."
    )

    beat: Duration = Field(_CORE.beat_ns, gt=0, description="Longest silence of a healthy prover.")
    unresponsive: Duration = Field(
        _CORE.unresponsive_ns, description="Silence after which a prover gets no new leases."
    )
    stuck_applied: Duration = Field(
        _CORE.stuck_applied_ns, description="A wish not taken in for so long closes the stream."
    )
    stuck_silent: Duration = Field(
        _CORE.stuck_silent_ns, description="Silence that closes the stream."
    )
    grace: Duration = Field(
        _CORE.grace_ns, description="How long a lease waits for its prover to come back."
    )
    leaving_stuck: Duration = Field(
        _CORE.leaving_stuck_ns, description="When a leaving lease stops counting as memory to come."
    )
    lease_floor: Duration = Field(_CORE.lease_floor_ns, description="Least timeout of a lease.")
    lease_factor: int = Field(
        _CORE.lease_factor,
        gt=0,
        description="Timeout of a lease in multiples of its expected time.",
    )
    key_switch_factor: int = Field(
        _CORE.key_switch_factor,
        ge=0,
        description="Key loads that older work must outweigh to move a prover; 0 = strict order.",
    )
    max_open_jobs: int = Field(_CORE.max_open_jobs, gt=0, description="Jobs that are not terminal.")
    max_open_partitions: int = Field(
        _CORE.max_open_partitions, gt=0, description="Their partitions."
    )
    max_unsaved_records: int = Field(
        _CORE.max_unsaved_records,
        gt=0,
        description="Unsaved records from which on nothing is accepted.",
    )
    max_known_provers: int = Field(
        _CORE.max_known_provers, gt=0, description="Provers that are connected or remembered."
    )
    max_leases_per_session: int = Field(
        _CORE.max_leases_per_session, gt=0, le=256, description="Leases on one prover at most."
    )
    poison_provers: int = Field(
        _CORE.poison_provers,
        gt=0,
        description="Provers on which a partition fails before its job does.",
    )
    poison_unverified_provers: int = Field(
        _CORE.poison_unverified_provers,
        gt=0,
        description="The same where their proofs did not verify.",
    )
    poison_failures: int = Field(
        _CORE.poison_failures, gt=0, description="Failures of a partition before its job fails."
    )
    quarantine_debits: int = Field(
        _CORE.quarantine_debits, gt=0, description="Standing debits that quarantine a prover."
    )
    quarantine: Duration = Field(
        _CORE.quarantine_ns, description="How long a quarantine for debits lasts."
    )
    max_crashes: int = Field(
        _CORE.max_crashes, gt=0, description="Crashes with a partition before its job fails."
    )
    alone_after_crashes: int = Field(
        _CORE.alone_after_crashes, ge=0, description="Crashes from which on a partition runs alone."
    )
    retain: Duration = Field(_CORE.retain_ns, description="How long a terminal job is kept.")
    retain_size: Size = Field(_CORE.retain_bytes, description="Kept results; the oldest go first.")
    keep_inputs: Duration = Field(
        _CORE.keep_inputs_ns, description="How long inputs of failed and cancelled jobs are kept."
    )
    refuse_retry: Duration = Field(
        _CORE.refuse_retry_ns, description="Delay named in a refusal that a retry can help."
    )
    clock_mark: Duration = Field(
        _CORE.clock_mark_ns, description="Least distance between two saved clock marks."
    )

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value not in LEVELS:
            raise ValueError(f"must be one of {', '.join(LEVELS)}")
        return value

    @field_validator("allow_plaintext")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            ipaddress.ip_network(text)
        return value

    @model_validator(mode="after")
    def _addresses_are_safe(self) -> SchedulerConfig:
        for name in ("listen", "prover_listen", "metrics_listen"):
            address = getattr(self, name)
            if name == "metrics_listen" and not address:
                continue
            if not plaintext_allowed(address, self.allow_plaintext):
                raise ValueError(
                    f"{name} = {address!r} is neither a unix socket nor loopback: name its network "
                    'in allow_plaintext (["0.0.0.0/0"] for every address) or choose another'
                )
        self.core()
        return self

    @model_validator(mode="after")
    def _limits_fit_each_other(self) -> SchedulerConfig:
        if self.max_blob > self.blob_quota:
            raise ValueError(
                f"max_blob = {format_size(self.max_blob)} is more than blob_quota = "
                f"{format_size(self.blob_quota)}, which holds all blobs: lower the one or raise "
                "the other"
            )
        if not self.beat < self.unresponsive <= self.stuck_silent:
            raise ValueError(
                f"beat = {format_duration(self.beat)}, unresponsive = "
                f"{format_duration(self.unresponsive)}, stuck_silent = "
                f"{format_duration(self.stuck_silent)}: each must be longer than the one before, "
                "or healthy provers are given up"
            )
        return self

    def core(self) -> CoreConfig:
        """Return the core's table."""
        values: dict[str, Any] = {}
        for name in CoreConfig.__slots__:
            key = "retain_size" if name == "retain_bytes" else name.removesuffix("_ns")
            if hasattr(self, key):
                values[name] = getattr(self, key)
        return CoreConfig(**values)


def plaintext_allowed(address: str, networks: tuple[str, ...]) -> bool:
    """Tell whether `address` may be served without TLS: unix, loopback or in a named network."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or any(ip in ipaddress.ip_network(text) for text in networks)
