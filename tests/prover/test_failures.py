"""What each error of the libraries means to the scheduler."""

from __future__ import annotations

import pytest

from partita.circuits.errors import (
    CircuitAssertError,
    CircuitInputError,
    ProgramError,
    ProgramLimitError,
)
from partita.groth16.errors import (
    ComputeError,
    EncodingError,
    FormatError,
    MismatchError,
    ResourceError,
    UnsatisfiedError,
)
from partita.prover.core.model import FailureKind
from partita.prover.failures import MAX_DETAIL_CHARS, InputLostError, failure_of


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (UnsatisfiedError(3, 9), FailureKind.INVALID_INPUT, "UNSATISFIED"),
        (CircuitAssertError("line 3"), FailureKind.INVALID_INPUT, "CIRCUIT_ASSERT"),
        (CircuitInputError("missing inputs: a"), FailureKind.INVALID_INPUT, "CIRCUIT_INPUT"),
        (ProgramError("wasm", "broke down"), FailureKind.INVALID_INPUT, "WITNESS_PROGRAM"),
        (ProgramLimitError("wasm", "too long"), FailureKind.INVALID_INPUT, "WITNESS_PROGRAM"),
        (MismatchError("curve", "a", "b"), FailureKind.INVALID_INPUT, "MISMATCH"),
        (FormatError("input", "cut off"), FailureKind.INVALID_INPUT, "MALFORMED_INPUT"),
        (EncodingError("witness[1]", "not below r"), FailureKind.INVALID_INPUT, "BAD_INPUT"),
        (ResourceError("16 GiB"), FailureKind.RESOURCE, "OUT_OF_MEMORY"),
        (MemoryError(), FailureKind.RESOURCE, "OUT_OF_MEMORY"),
        (ComputeError("panic"), FailureKind.COMPUTE, "BACKEND_FAILED"),
        (InputLostError("gone"), FailureKind.INPUT_LOST, "INPUT_LOST"),
        (ZeroDivisionError("oh"), FailureKind.INTERNAL, "UNEXPECTED"),
    ],
)
def test_each_error_has_its_kind_and_reason(
    error: Exception, kind: FailureKind, reason: str
) -> None:
    failure = failure_of(error)
    assert (failure.kind, failure.reason) == (kind, reason)
    assert failure.detail


def test_details_are_bounded() -> None:
    assert len(failure_of(FormatError("input", "x" * 10**6)).detail) == MAX_DETAIL_CHARS


def test_what_may_be_the_fault_of_the_build_names_it_and_a_wrong_input_does_not() -> None:
    for error in (ResourceError("x" * 10**4), ComputeError("panic"), ZeroDivisionError("oh")):
        failure = failure_of(error, "1.2 code 00ff")
        assert failure.detail.endswith(" (build 1.2 code 00ff)")
        assert len(failure.detail) <= MAX_DETAIL_CHARS
    assert "build" not in failure_of(UnsatisfiedError(3, 9), "1.2 code 00ff").detail
