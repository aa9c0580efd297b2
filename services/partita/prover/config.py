"""Configuration of a prover: the table [prover]."""

from __future__ import annotations

import os
import re
import socket
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from partita.circuits.packed import DEFAULT_QUOTA_BYTES
from partita.service.config import Address, Duration, Folder, HttpAddress, ProgramConfig, Size
from partita.service.logs import LEVELS
from partita.service.paths import default_data_dir
from partita.service.sizes import memory_limit_bytes

_SECOND = 10**9
_MARGIN_DIVISOR = 8
_LABEL = re.compile(r"[^=]{1,64}=.{0,256}")
_PROVER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def default_schedulers() -> tuple[str, ...]:
    """Return the address of a scheduler of this machine."""
    return ("127.0.0.1:9831",)


class ProverConfig(ProgramConfig):
    """The table [prover]; durations are nanoseconds and sizes bytes once loaded."""

    table: ClassVar[str] = "prover"

    prover_id: str = Field(
        default_factory=socket.gethostname,
        description="Stable name of this prover; each prover of a scheduler has its own.",
    )
    schedulers: tuple[Address, ...] = Field(
        default_factory=default_schedulers,
        description="Addresses of the scheduler's prover port, tried in turn.",
    )
    listen: Address = Field(
        "127.0.0.1:9840", description="Address of the prover's own service; port 0 = any."
    )
    metrics_listen: HttpAddress = Field(
        "",
        description="Address of /metrics, /healthz and /readyz over HTTP, such as 127.0.0.1:9850; "
        "empty = none.",
    )
    data_dir: Folder = Field(
        default_factory=default_data_dir,
        description="Where circuits and run files live; provers of one machine may share it.",
    )
    backend: Literal["native", "reference"] = Field("native", description="What computes proofs.")
    memory: Size | None = Field(
        None,
        gt=0,
        description="Memory for keys and leases; unset = the machine's or cgroup's less an eighth.",
    )
    packed_quota: Size = Field(
        DEFAULT_QUOTA_BYTES,
        gt=0,
        description="Disk for packed proving keys; those idle for longest are removed.",
    )
    limit_data: bool = Field(
        False,
        description="Let the kernel refuse memory beyond `memory` + `memory_margin`.",
    )
    memory_margin: Size = Field(
        1 << 30, description="Memory of the process beside keys and leases, for `limit_data`."
    )
    cores: int | None = Field(None, gt=0, description="Cores to compute on; unset = all.")
    synthesis_threads: int = Field(
        1, gt=0, description="Witnesses made at the same time; one more thread is for CRITICAL."
    )
    max_leases: int | None = Field(
        None, gt=0, le=255, description="Leases at once; unset = synthesis_threads + 2."
    )
    check_rows_below: int = Field(
        1 << 18,
        ge=0,
        description="Circuits with fewer constraints have every witness checked row by row.",
    )
    drain_grace: Duration = Field(
        600 * _SECOND, description="How long work may finish once the prover is told to stop."
    )
    fault_grace: Duration = Field(
        3 * _SECOND, description="From a fault of the device to the end of the process."
    )
    orphan_ttl: Duration = Field(
        3600 * _SECOND, description="How long proofs are kept while no scheduler is there."
    )
    watchdog_stall: Duration = Field(
        60 * _SECOND,
        gt=0,
        description="The least time without progress on the device that ends the process.",
    )
    backoff: Duration = Field(
        _SECOND // 2, gt=0, description="The least wait before connecting again."
    )
    backoff_busy: Duration = Field(
        10 * _SECOND, gt=0, description="The most, while leases are held."
    )
    backoff_idle: Duration = Field(30 * _SECOND, gt=0, description="The most, otherwise.")
    build_check: Duration = Field(
        30 * _SECOND,
        gt=0,
        description="How often the installed files are compared with those that run.",
    )
    labels: tuple[str, ...] = Field(
        (), max_length=16, description='Notes shown with the prover, such as ["zone=a", "rack=7"].'
    )
    log_level: str = Field("info", description="debug, info, warning or error.")
    check_invariants: bool = Field(
        False, description="Check the core's invariants after every step; slow, for diagnosis."
    )

    @field_validator("prover_id")
    @classmethod
    def _check_prover_id(cls, value: str) -> str:
        if _PROVER_ID.fullmatch(value) is None:
            raise ValueError("use 1 to 128 letters, digits, '.', '_' or '-', no sign first")
        return value

    @field_validator("schedulers")
    @classmethod
    def _check_schedulers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not all(value):
            raise ValueError('name at least one address, such as ["127.0.0.1:9831"]')
        return value

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for label in value:
            if _LABEL.fullmatch(label) is None:
                raise ValueError(f"{label!r} is no label; write it like zone=a")
        return value

    @field_validator("log_level")
    @classmethod
    def _check_log_level(cls, value: str) -> str:
        if value not in LEVELS:
            raise ValueError(f"choose one of {', '.join(LEVELS)}")
        return value

    @property
    def total_bytes(self) -> int:
        """Memory for keys and leases."""
        if self.memory is not None:
            return self.memory
        limit_bytes = memory_limit_bytes()
        return limit_bytes - limit_bytes // _MARGIN_DIVISOR

    @property
    def n_cores(self) -> int:
        """Cores to compute on."""
        return self.cores or len(os.sched_getaffinity(0))

    @property
    def n_leases(self) -> int:
        """Leases at once, the express one not counted."""
        return self.max_leases or self.synthesis_threads + 2
