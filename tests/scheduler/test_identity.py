"""A submission's digest is over its content alone; job ids are ordered by time."""

from __future__ import annotations

import hashlib
import os
import uuid

from partita.scheduler.identity import JobIds, job_digest

A, B, M = b"a" * 32, b"b" * 32, b"m" * 32


def test_the_digest_is_over_manifest_format_inputs_and_statements_as_submitted() -> None:
    found = job_digest(M, "wtns", [(A, None), (B, b"statement")])
    expected = hashlib.sha256(
        M + b"\x04\0\0\0wtns" + A + bytes(32) + B + hashlib.sha256(b"statement").digest()
    ).digest()
    assert found == expected


def test_any_other_content_or_order_has_another_digest() -> None:
    digests = [
        job_digest(M, "wtns", [(A, None), (B, None)]),
        job_digest(M, "wtns", [(B, None), (A, None)]),
        job_digest(M, "wtns", [(A, None)]),
        job_digest(M, "wtns", [(A, b""), (B, None)]),
        job_digest(M, "circom.json", [(A, None), (B, None)]),
        job_digest(B, "wtns", [(A, None), (B, None)]),
    ]
    assert len(set(digests)) == len(digests)


def test_ids_rise_with_time_even_within_a_millisecond_and_backwards() -> None:
    ids = JobIds()
    times_ns = [10**18] * 5000 + [10**18 - 10**9, 10**18 + 10**9]
    minted = [ids.mint(now_ns, os.urandom(8)) for now_ns in times_ns]
    assert minted == sorted(minted)
    assert len(set(minted)) == len(minted)
    assert {uuid.UUID(value).version for value in minted} == {7}
