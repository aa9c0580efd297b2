"""The one table of codes knows every error and every reason."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import grpc
import pytest

from partita.circuits import errors as circuit_errors
from partita.scheduler import blobs, engine
from partita.scheduler.api.status import CLASSES, REASONS, RETRIED, bad, of_error, of_refusal
from partita.scheduler.blobs import BlobMissingError
from partita.scheduler.core import effects, errors, fleet
from partita.scheduler.core.errors import REFUSALS, JobUnknown


def _errors_of(module: ModuleType) -> Iterator[type[Exception]]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, Exception) and kind.__module__ == module.__name__:
            yield kind


@pytest.mark.parametrize("module", [errors, blobs, engine], ids=lambda m: m.__name__)
def test_every_error_class_has_a_code(module: ModuleType) -> None:
    assert set(_errors_of(module)) <= set(CLASSES)


def test_every_error_of_the_catalogue_has_a_code() -> None:
    catalogue = {
        kind
        for kind in _errors_of(circuit_errors)
        if issubclass(kind, circuit_errors.CatalogueError)
    }
    assert catalogue <= set(CLASSES)


@pytest.mark.parametrize("reason", sorted(REFUSALS))
def test_every_refusal_of_the_core_has_a_code_and_keeps_its_delay(reason: str) -> None:
    error = of_refusal(effects.Refuse(1, reason, "because", 7))
    assert error.code is not grpc.StatusCode.INTERNAL
    assert (error.reason, error.message, error.retry_after_ns) == (reason, "because", 7)


def test_reasons_that_say_try_again_always_carry_a_delay() -> None:
    assert set(REASONS) >= RETRIED
    for reason in RETRIED & REFUSALS:
        assert of_refusal(effects.Refuse(1, reason, "", None)).retry_after_ns


def test_every_reason_of_the_classes_is_in_the_table_of_reasons() -> None:
    assert {reason for _, reason in CLASSES.values()} <= set(REASONS)


def test_missing_blobs_are_listed_by_digest() -> None:
    error = of_error(BlobMissingError([b"a" * 32, b"b" * 32]))
    assert error.metadata == {"missing": "2", "sha256": f"{'61' * 32},{'62' * 32}"}


def test_an_unknown_job_keeps_its_words() -> None:
    error = of_error(JobUnknown("j"))
    assert error.code is grpc.StatusCode.NOT_FOUND
    assert "'j'" in error.message


def test_every_reason_with_which_the_core_closes_a_stream_has_a_code() -> None:
    source = inspect.getsource(fleet)
    reasons = set(re.findall(r'(?:_refuse|end_session)\([^()]*"([A-Z_]+)"\)', source))
    assert {"STUCK", "SUPERSEDED", "PROVER_ID_IN_USE", "STALE_EPOCH"} <= reasons
    assert reasons <= set(REASONS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partitions[1], section 2: cut off", "partitions[1], section 2: cut off"),
        ("partitions[1].blob is gone", "partitions[1].blob is gone"),
        ("has no input", "partitions[1]: has no input"),
        ("partitions[12] is not meant", "partitions[1]: partitions[12] is not meant"),
    ],
)
def test_a_text_that_begins_with_its_place_says_it_once(text: str, message: str) -> None:
    error = bad("partitions[1]", text)
    assert error.message == message
    assert error.fields == {"partitions[1]": text}
