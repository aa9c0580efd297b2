"""When to try a call again: exponential back-off with full jitter, the server's wish obeyed.

A streak of failures begins with the first one and ends with any answer. It is given up when it
has lasted `give_up_after_s`: long enough for a scheduler to restart, not for ever. Clock and
randomness are handed in, so that the same rules hold for both clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita_client.errors import PartitaError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class RetryPolicy:
    """How long and how often to try again.

    Attributes:
        give_up_after_s: a streak of failures that lasts longer is raised; 0 = never try again.
        first_s: the back-off's bound after the first failure; it doubles with each.
        most_s: the largest bound.
    """

    give_up_after_s: float = 60.0
    first_s: float = 0.2
    most_s: float = 5.0


class Retry:
    """One caller's streak of failures.

    Args:
        policy: the limits.
        clock: monotonic seconds.
        random: uniform in [0, 1).
    """

    def __init__(
        self, policy: RetryPolicy, clock: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._random = random
        self._since_s: float | None = None
        self._failures = 0

    def succeeded(self) -> None:
        """End the streak: an answer came."""
        self._since_s = None
        self._failures = 0

    def delay_s(self, error: PartitaError) -> float:
        """Return the seconds to wait before the next try.

        Raises:
            PartitaError: `error` itself, if another try cannot help or the time is up.
        """
        if not isinstance(error, UnavailableError) and error.retry_after_s is None:
            raise error
        now_s = self._clock()
        if self._since_s is None:
            self._since_s = now_s
        bound_s = min(self._policy.first_s * 2.0**self._failures, self._policy.most_s)
        self._failures = min(self._failures + 1, 30)
        delay_s = (error.retry_after_s or 0.0) + self._random() * bound_s
        if now_s + delay_s - self._since_s > self._policy.give_up_after_s:
            raise error
        return delay_s
