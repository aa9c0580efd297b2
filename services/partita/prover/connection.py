"""Calls on a channel that may be closed under them when the session with a scheduler ends.

Closing a channel cancels its calls, which looks to the caller as if its own task was cancelled.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class ConnectionLostError(Exception):
    """The channel was closed during the call; another try needs the next channel."""


@contextmanager
def surviving_close() -> Iterator[None]:
    """Turn the end of a call by its channel's end into ConnectionLostError.

    A cancellation of the task itself passes through.
    """
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionLostError("the connection to the scheduler ended") from None
