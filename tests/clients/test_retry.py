"""A streak of failures backs off with jitter, obeys the server and is given up in time."""

import pytest

from partita_client.errors import InvalidRequestError, OverloadedError, UnavailableError
from partita_client.retry import Retry, RetryPolicy


class _Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_the_bound_doubles_up_to_the_most() -> None:
    retry = Retry(RetryPolicy(1000, first_s=1, most_s=8), _Time(), lambda: 1.0)
    assert [retry.delay_s(UnavailableError("")) for _ in range(6)] == [1, 2, 4, 8, 8, 8]


def test_an_answer_ends_the_streak() -> None:
    retry = Retry(RetryPolicy(1000, first_s=1), _Time(), lambda: 1.0)
    assert [retry.delay_s(UnavailableError("")) for _ in range(2)] == [1, 2]
    retry.succeeded()
    assert retry.delay_s(UnavailableError("")) == 1


def test_a_streak_that_lasts_too_long_raises_its_last_error() -> None:
    clock = _Time()
    retry = Retry(RetryPolicy(10), clock, lambda: 0.0)
    retry.delay_s(UnavailableError("first"))
    clock.now_s = 10.5
    with pytest.raises(UnavailableError, match="second"):
        retry.delay_s(UnavailableError("second"))


def test_a_delay_that_ends_beyond_the_limit_is_not_slept() -> None:
    retry = Retry(RetryPolicy(10), _Time(), lambda: 0.0)
    with pytest.raises(OverloadedError):
        retry.delay_s(OverloadedError("full", retry_after_s=11))


def test_the_servers_wish_comes_before_the_jitter() -> None:
    retry = Retry(RetryPolicy(10, first_s=1), _Time(), lambda: 0.5)
    assert retry.delay_s(OverloadedError("full", retry_after_s=3)) == 3.5


def test_an_error_that_another_try_does_not_mend_is_raised_at_once() -> None:
    retry = Retry(RetryPolicy(), _Time(), lambda: 0.0)
    with pytest.raises(InvalidRequestError):
        retry.delay_s(InvalidRequestError("priority"))
    with pytest.raises(OverloadedError):
        retry.delay_s(OverloadedError("larger than the server takes"))
