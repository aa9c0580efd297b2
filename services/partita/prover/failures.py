"""From what the libraries raise to what a lease's Failure says.

InputError blames the input and is never retried; memory that was refused, a backend that broke
and everything unforeseen are tried elsewhere. Details are for people, bounded, and never hold
witness data: the libraries' messages name positions and not values of inputs.
"""

from __future__ import annotations

from partita.circuits.errors import CircuitAssertError, CircuitInputError, ProgramError
from partita.groth16.errors import (
    ComputeError,
    FormatError,
    InputError,
    MismatchError,
    ResourceError,
    UnsatisfiedError,
)
from partita.prover.core.model import Failure, FailureKind

MAX_DETAIL_CHARS = 2000

_REASONS: tuple[tuple[type[InputError], str], ...] = (
    (UnsatisfiedError, "UNSATISFIED"),
    (CircuitAssertError, "CIRCUIT_ASSERT"),
    (CircuitInputError, "CIRCUIT_INPUT"),
    (ProgramError, "WITNESS_PROGRAM"),
    (MismatchError, "MISMATCH"),
    (FormatError, "MALFORMED_INPUT"),
)


class InputLostError(Exception):
    """The scheduler does not have the input, or its bytes do not match its digest."""


def failure_of(error: BaseException, build: str = "") -> Failure:
    """Return the Failure that an exception of a stage means.

    Args:
        error: the exception.
        build: names the prover's build; told where the build may be to blame, and not the input.
    """
    if isinstance(error, InputLostError):
        return _failure(FailureKind.INPUT_LOST, "INPUT_LOST", error)
    if isinstance(error, InputError):
        reason = next((name for kind, name in _REASONS if isinstance(error, kind)), "BAD_INPUT")
        return _failure(FailureKind.INVALID_INPUT, reason, error)
    if isinstance(error, ResourceError | MemoryError):
        return _failure(FailureKind.RESOURCE, "OUT_OF_MEMORY", error, build)
    if isinstance(error, ComputeError):
        return _failure(FailureKind.COMPUTE, "BACKEND_FAILED", error, build)
    return _failure(FailureKind.INTERNAL, "UNEXPECTED", f"{type(error).__name__}: {error}", build)


def _failure(
    kind: FailureKind, reason: str, error: BaseException | str, build: str = ""
) -> Failure:
    text = str(error) or type(error).__name__
    end = f" (build {build})" if build else ""
    return Failure(kind, reason, text[: MAX_DETAIL_CHARS - len(end)] + end)
