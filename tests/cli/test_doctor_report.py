"""What `doctor` reports of a check that cannot be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita.cli.doctor_report import Check, Status, attempt, ok, warn


def test_what_a_check_found_is_reported_as_it_is() -> None:
    one, two = ok("one", "fine"), warn("two", "odd", "mend it")
    assert attempt("name", lambda: one) == [one]
    assert attempt("name", lambda: [one, two]) == [one, two]


@pytest.mark.parametrize(
    ("error", "found", "cure"),
    [
        (NotADirectoryError(20, "Not a directory", "/a/b"), "/a/b: Not a directory", "/a/b"),
        (TimeoutError("too slow"), "too slow", "read it"),
        (OverflowError("int too\nlarge"), "OverflowError: int too large (test_doctor_", "report"),
        (RecursionError(), "RecursionError: (test_doctor_report.py:", "report"),
    ],
)
def test_an_error_of_a_check_is_a_failed_row_that_names_the_check_and_the_error(
    error: Exception, found: str, cure: str
) -> None:
    def look() -> Check:
        raise error

    (row,) = attempt("clock", look)
    assert (row.name, row.status) == ("clock", Status.FAIL)
    assert row.found.startswith("cannot be checked: ")
    assert found in row.found
    assert cure in row.cure


def test_an_error_between_the_rows_of_a_check_is_a_failed_row_too() -> None:
    def look() -> Iterator[Check]:
        yield ok("one", "fine")
        raise ValueError("the second")

    (row,) = attempt("both", look)
    assert (row.name, row.status) == ("both", Status.FAIL)


def test_an_interrupt_ends_the_command() -> None:
    def look() -> Check:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt("clock", look)
