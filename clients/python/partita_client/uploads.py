"""The messages of one upload, for gRPC's blocking stack, which iterates them in its own thread.

The asyncio client uploads through that stack too: when a server answers before it has read all,
as it does for a blob it has or refuses, grpc.aio can lose the answer to the failing write and
report INTERNAL instead. The blocking stack does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.v1 import blobs_pb2
from partita_client.errors import InvalidRequestError

if TYPE_CHECKING:
    from partita_client.flows import Upload


class UploadMessages:
    """A header, then chunks.

    Attributes:
        failure: why the content could not be read, which gRPC would hide.
    """

    def __init__(self, step: Upload) -> None:
        self._step = step
        self.failure: InvalidRequestError | None = None

    def __iter__(self) -> Iterator[blobs_pb2.UploadRequest]:
        yield blobs_pb2.UploadRequest(header=self._step.content.ref)
        sent_bytes = 0
        try:
            for chunk in self._step.content.chunks():
                yield blobs_pb2.UploadRequest(chunk=chunk)
                sent_bytes += len(chunk)
                self._step.sent(sent_bytes)
        except InvalidRequestError as error:
            self.failure = error
            raise
