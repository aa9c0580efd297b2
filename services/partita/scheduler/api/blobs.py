"""BlobService: clients upload and ask what is missing; provers download.

Two servicers, because the two ports serve different peers: what a client uploaded can be read back
only by provers, and only while a job refers to it or if it is a file of a circuit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from partita.scheduler.api.status import answers_errors, bad, missing_blobs, of_error
from partita.scheduler.api.submission import blob_ref
from partita.scheduler.api.translate import timestamp
from partita.scheduler.blobs import BlobMissingError, BlobStore
from partita.scheduler.catalogue import CatalogueWatcher
from partita.service.grpcio import CHUNK_BYTES, RpcError, abort
from partita.v1 import blobs_pb2, blobs_pb2_grpc, types_pb2

MAX_BLOBS_ASKED = 4096

Context = grpc.aio.ServicerContext[Any, Any]


class ClientBlobService(blobs_pb2_grpc.BlobServiceServicer):
    """What clients may do with blobs.

    Args:
        blobs: the store.
        stall_ns: an upload that sends nothing for so long is ended, so that it does not keep a
            slot from others.
    """

    def __init__(self, blobs: BlobStore, *, stall_ns: int) -> None:
        self._blobs = blobs
        self._stall_s = stall_ns / 1e9

    @answers_errors
    async def Upload(  # noqa: N802
        self, requests: AsyncIterator[blobs_pb2.UploadRequest], context: Context
    ) -> blobs_pb2.UploadResponse:
        """See the service's definition."""
        del context
        async with self._blobs.upload_permit():
            messages = _in_time(requests, self._stall_s)
            first = await anext(messages, None)
            if first is None or first.WhichOneof("content") != "header":
                raise bad("header", "the first message of an upload must be the header")
            ref = blob_ref("header", first.header)
            kept_until_ns = None
            if self._blobs.size(ref.sha256) == ref.size_bytes:
                kept_until_ns = self._blobs.renew(ref.sha256)
            if kept_until_ns is None:
                kept_until_ns = await self._blobs.put(ref, _chunks(messages))
        return blobs_pb2.UploadResponse(
            blob=types_pb2.BlobRef(sha256=ref.sha256, size_bytes=ref.size_bytes),
            kept_until=timestamp(kept_until_ns),
        )

    @answers_errors
    async def FindMissing(  # noqa: N802
        self, request: blobs_pb2.FindMissingRequest, context: Context
    ) -> blobs_pb2.FindMissingResponse:
        """See the service's definition."""
        del context
        if len(request.blobs) > MAX_BLOBS_ASKED:
            raise bad("blobs", f"{len(request.blobs)} blobs: ask for at most {MAX_BLOBS_ASKED}")
        refs = [blob_ref(f"blobs[{index}]", blob) for index, blob in enumerate(request.blobs)]
        return blobs_pb2.FindMissingResponse(
            missing=[
                types_pb2.BlobRef(sha256=ref.sha256, size_bytes=ref.size_bytes)
                for ref in refs
                if self._blobs.size(ref.sha256) != ref.size_bytes
                or self._blobs.renew(ref.sha256) is None
            ]
        )


async def _in_time(
    requests: AsyncIterator[blobs_pb2.UploadRequest], stall_s: float
) -> AsyncIterator[blobs_pb2.UploadRequest]:
    while True:
        try:
            async with asyncio.timeout(stall_s):
                request = await anext(requests, None)
        except TimeoutError as error:
            raise bad("chunk", f"none came for {stall_s:g} s: upload again") from error
        if request is None:
            return
        yield request


async def _chunks(requests: AsyncIterator[blobs_pb2.UploadRequest]) -> AsyncIterator[bytes]:
    async for request in requests:
        if request.WhichOneof("content") != "chunk":
            raise bad("chunk", "after the header only chunks may follow")
        if len(request.chunk) > CHUNK_BYTES:
            raise bad("chunk", f"{len(request.chunk)} bytes: at most {CHUNK_BYTES}")
        yield request.chunk


class ProverBlobService(blobs_pb2_grpc.BlobServiceServicer):
    """What provers may do with blobs.

    Args:
        blobs: the store.
        catalogue: the circuits, whose files are served too.
    """

    def __init__(self, blobs: BlobStore, catalogue: CatalogueWatcher) -> None:
        self._blobs = blobs
        self._catalogue = catalogue

    async def Download(  # noqa: N802
        self, request: blobs_pb2.DownloadRequest, context: Context
    ) -> AsyncIterator[blobs_pb2.DownloadResponse]:
        """See the service's definition."""
        try:
            async for chunk in self._content(request):
                yield blobs_pb2.DownloadResponse(chunk=chunk)
        except RpcError as error:
            await abort(context, error)
        except BlobMissingError as error:
            await abort(context, of_error(error))

    def _content(self, request: blobs_pb2.DownloadRequest) -> AsyncIterator[bytes]:
        digest = blob_ref("blob", request.blob).sha256
        file = self._catalogue.known.by_digest.get(digest)
        size = file.ref.size_bytes if file is not None else self._blobs.size(digest)
        if size is None or (file is None and not self._blobs.is_input(digest)):
            raise missing_blobs((digest,))
        if size != request.blob.size_bytes:
            raise bad("blob.size_bytes", f"{request.blob.size_bytes}: the blob has {size} bytes")
        if request.offset > size:
            raise bad("offset", f"{request.offset} is beyond the end at {size}")
        if file is not None:
            return self._blobs.read_file(file.path, request.offset, digest)
        return self._blobs.read(digest, request.offset)

    async def Upload(self, requests: object, context: Context) -> None:  # noqa: N802
        """Provers do not upload."""
        del requests
        await abort(context, _CLIENTS_ONLY)

    async def FindMissing(self, request: object, context: Context) -> None:  # noqa: N802
        """Provers do not upload."""
        del request
        await abort(context, _CLIENTS_ONLY)


_CLIENTS_ONLY = RpcError(
    grpc.StatusCode.UNIMPLEMENTED, "BAD_INPUT", "uploads go to the address for clients"
)
