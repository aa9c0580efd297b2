"""What is sent: inputs and circuit files as bytes, files or JSON values, with their digests.

A content is read twice when it is a file: once for its digest, once when it is sent. A file that
changes in between is refused by the server, which compares the digest; nothing wrong is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.v1 import types_pb2
from partita_client.errors import InvalidRequestError

CHUNK_BYTES = 1 << 20

Source = bytes | bytearray | memoryview | str | os.PathLike[str] | Mapping[str, Any]
"""Bytes themselves; a path; or, for circom.json, the input's values by name."""


@dataclass(frozen=True)
class Content:
    """Bytes with their name.

    Attributes:
        data: the bytes, or the file that holds them.
        sha256: their digest, 32 bytes.
        size_bytes: how many they are.
    """

    data: bytes | Path
    sha256: bytes
    size_bytes: int

    @property
    def ref(self) -> types_pb2.BlobRef:
        """The name of the content on the wire."""
        return types_pb2.BlobRef(sha256=self.sha256, size_bytes=self.size_bytes)

    def read(self) -> bytes:
        """Return all its bytes.

        Raises:
            InvalidRequestError: the file cannot be read.
        """
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes in pieces of at most 1 MiB.

        Raises:
            InvalidRequestError: the file cannot be read.
        """
        if isinstance(self.data, bytes):
            for start in range(0, self.size_bytes, CHUNK_BYTES):
                yield self.data[start : start + CHUNK_BYTES]
        else:
            yield from _file_chunks(self.data)


def content_of(source: Source) -> Content:
    """Return the content that a caller means, with its digest.

    Raises:
        InvalidRequestError: the file cannot be read, or the values are not JSON.
    """
    if isinstance(source, Mapping):
        try:
            source = json.dumps(source, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"input: not JSON: {error}; write numbers above 2^53 as decimal strings or ints"
            ) from error
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return Content(data, hashlib.sha256(data).digest(), len(data))
    path = Path(source)
    digest = hashlib.sha256()
    size_bytes = 0
    for chunk in _file_chunks(path):
        digest.update(chunk)
        size_bytes += len(chunk)
    return Content(path, digest.digest(), size_bytes)


def _file_chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise InvalidRequestError(f"{path}: cannot be read: {error.strerror}") from error
