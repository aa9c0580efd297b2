"""The optional arguments of a submission, shared by both clients."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TypedDict

from partita_client.flows import Priority


class SubmitOptions(TypedDict, total=False):
    """What may be said about a job beyond its circuit and inputs.

    Attributes:
        statements: public inputs of each partition, n_public x 32 bytes little-endian, outputs
            first; None where the input states them itself.
        priority: the class; default "normal".
        request_id: the idempotency key; default a fresh one, so that the client's own retries
            attach to the job instead of doubling it. "" = every call is a new job.
        deadline: after this the job is of no use and fails.
        retain: how long to keep the result.
        abandon_after: cancel this long after the last waiter has gone.
        labels: at most 16 notes.
    """

    statements: Sequence[bytes | None] | None
    priority: Priority
    request_id: str
    deadline: dt.datetime | None
    retain: dt.timedelta | None
    abandon_after: dt.timedelta | None
    labels: Mapping[str, str]
