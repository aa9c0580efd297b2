"""Errors that the scheduler's core raises, and the reasons with which it refuses.

    SchedulerError
    ├── RequestError            the caller can fix it; the state is unchanged
    │   ├── JobUnknown          no such job, or its retention is over
    │   ├── SessionUnknown      the session has closed meanwhile: send nothing
    │   └── SnapshotRejected    not a snapshot of this version of the core
    └── CoreBug                 an invariant broke: stop, do not continue

A submission is never answered by an exception: it may have to wait for the store, so its
answer is an effect (`Accept` or `Refuse`). Nothing here names gRPC.
"""

from __future__ import annotations

REFUSALS = frozenset(
    {
        "JOB_UNKNOWN",
        "NOT_RETRYABLE",
        "UNKNOWN_CIRCUIT",
        "UNKNOWN_FORMAT",
        "BAD_INPUT",
        "TOO_LARGE_FOR_FLEET",
        "QUEUE_FULL",
        "STORE_BEHIND",
    }
)
"""Every `Refuse.reason`; the last two carry a retry delay."""


class SchedulerError(Exception):
    """Base of every error the core raises; never raised itself."""


class RequestError(SchedulerError):
    """The request cannot be served; the core's state is unchanged."""


class JobUnknown(RequestError):  # noqa: N818
    """No job has that id."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r} is unknown: it never existed or its retention is over")
        self.job_id = job_id


class SessionUnknown(RequestError):  # noqa: N818
    """No open session has that number."""

    def __init__(self, session: int) -> None:
        super().__init__(f"session {session} is not open")
        self.session = session


class SnapshotRejected(RequestError):  # noqa: N818
    """The bytes are not a snapshot that this core can restore."""


class CoreBug(SchedulerError):  # noqa: N818
    """An invariant of the core does not hold.

    Raised instead of `assert`, so that `python -O` cannot remove it.
    """
