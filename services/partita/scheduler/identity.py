"""Who a submission is: the digest of its content, and the ids of new jobs.

The digest goes over canonical values, never over protobuf bytes, and not over priority, ids or
labels: the same content under the same request_id is the same job.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

NO_STATEMENT = bytes(32)
"""Stands for the digest of a statement that was not submitted."""


def job_digest(
    manifest_sha256: bytes,
    input_format: str,
    partitions: Iterable[tuple[bytes, bytes | None]],
) -> bytes:
    """Return the 32-byte digest of a submission's content.

    Args:
        manifest_sha256: digest of the circuit's manifest, 32 bytes.
        input_format: what the inputs are.
        partitions: for each partition the digest of its input and the statement as submitted.
    """
    digest = hashlib.sha256()
    digest.update(manifest_sha256)
    name = input_format.encode()
    digest.update(len(name).to_bytes(4, "little"))
    digest.update(name)
    for input_sha256, statement in partitions:
        digest.update(input_sha256)
        digest.update(NO_STATEMENT if statement is None else hashlib.sha256(statement).digest())
    return digest.digest()


class JobIds:
    """Mints job ids: UUIDs of version 7 (RFC 9562), ordered by time within this process."""

    def __init__(self) -> None:
        self._last_ms = 0
        self._serial = 0

    def mint(self, now_ns: int, random: bytes) -> str:
        """Return a new id.

        Args:
            now_ns: the service's clock.
            random: 8 fresh random bytes.
        """
        now_ms = max(now_ns // 1_000_000, self._last_ms)
        self._serial = self._serial + 1 if now_ms == self._last_ms else 0
        if self._serial > 0xFFF:
            now_ms, self._serial = now_ms + 1, 0
        self._last_ms = now_ms
        tail = int.from_bytes(random[:8], "big") & ((1 << 62) - 1)
        value = (now_ms & ((1 << 48) - 1)) << 80 | 7 << 76 | self._serial << 64 | 2 << 62 | tail
        return str(uuid.UUID(int=value))
