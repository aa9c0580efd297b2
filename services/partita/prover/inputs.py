"""Inputs of leases: brought here, checked against their digest, unmapped on demand.

An input lies in an anonymous mapping of its own, never in a file: it is a secret, and giving it
back must give memory back.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import mmap
from typing import TYPE_CHECKING

import grpc

from partita.groth16.errors import ResourceError
from partita.prover.connection import ConnectionLostError, surviving_close
from partita.prover.failures import InputLostError
from partita.service import logs
from partita.v1 import blobs_pb2, blobs_pb2_grpc, types_pb2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from partita.prover.core.model import LeaseOrder

_RETRY_S = 0.5
_log = logs.get("inputs")
_LOST = (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT)
"""BLOB_MISSING, and another size than the blob has: asking again does not help."""

_Channel = grpc.aio.Channel


class InputBuffer:
    """The bytes of an input.

    Args:
        size_bytes: its exact size.

    Raises:
        ResourceError: the memory was refused.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        try:
            self._map = mmap.mmap(-1, max(size_bytes, 1), flags=mmap.MAP_PRIVATE)
        except OSError as error:
            raise ResourceError(f"an input of {size_bytes} bytes: {error.strerror}") from error
        self._view = memoryview(self._map)[:size_bytes]

    @property
    def data(self) -> memoryview:
        """The bytes, read-only."""
        return self._view.toreadonly()

    def write(self, offset: int, chunk: bytes) -> None:
        """Put the next bytes in place."""
        self._view[offset : offset + len(chunk)] = chunk

    def release(self) -> bool:
        """Unmap; every view of the bytes must be gone. False if one is not."""
        self._view.release()
        for last in (False, True):
            try:
                self._map.close()
            except BufferError:
                if last:
                    return False
                gc.collect()
            else:
                break
        return True


async def fetch_input(
    order: LeaseOrder,
    channel: Callable[[], Awaitable[_Channel]],
    retry_s: float = _RETRY_S,
) -> InputBuffer:
    """Bring an input here, from the order itself or by download.

    A scheduler that is away is waited for; the caller cancels.

    Args:
        order: names the input.
        channel: waits for a scheduler and returns the channel to it.
        retry_s: how long to wait between tries.

    Raises:
        InputLostError: the scheduler lacks the input, or the bytes do not match.
        ResourceError: it is larger than what the lease may occupy, or memory was refused.
    """
    size = order.input.size_bytes
    if size > order.reserved.host:
        raise ResourceError(
            f"the input has {size} bytes, the lease reserves only {order.reserved.host}"
        )
    buffer = InputBuffer(size)
    try:
        found = await _fill(buffer, order, channel, retry_s)
        if found != order.input.sha256:
            raise InputLostError(
                f"the input's bytes have SHA-256 {found.hex()}, "
                f"{order.input.sha256.hex()} was ordered"
            )
    except BaseException:
        buffer.release()
        raise
    return buffer


async def _fill(
    buffer: InputBuffer,
    order: LeaseOrder,
    channel: Callable[[], Awaitable[_Channel]],
    retry_s: float,
) -> bytes:
    """Fill the buffer and return the SHA-256 of its bytes."""
    if order.inline:
        if len(order.inline) != buffer.size_bytes:
            raise InputLostError(
                f"the input has {len(order.inline)} bytes, {buffer.size_bytes} were ordered"
            )
        buffer.write(0, order.inline)
        return hashlib.sha256(order.inline).digest()
    while True:
        digest = await _download(order, await channel(), buffer)
        if digest is not None:
            return digest
        await asyncio.sleep(retry_s)


async def _download(order: LeaseOrder, channel: _Channel, buffer: InputBuffer) -> bytes | None:
    """Fill the buffer and return its SHA-256; None if the scheduler could not be reached."""
    stub = blobs_pb2_grpc.BlobServiceStub(channel)
    blob = types_pb2.BlobRef(sha256=order.input.sha256, size_bytes=order.input.size_bytes)
    offset, digest = 0, hashlib.sha256()
    try:
        with surviving_close():
            async for message in stub.Download(blobs_pb2.DownloadRequest(blob=blob)):
                if offset + len(message.chunk) > buffer.size_bytes:
                    raise InputLostError(f"the input has more than {buffer.size_bytes} bytes")
                buffer.write(offset, message.chunk)
                digest.update(message.chunk)
                offset += len(message.chunk)
    except grpc.aio.AioRpcError as error:
        if error.code() in _LOST:
            digest_hex = order.input.sha256.hex()
            why = f"the scheduler does not serve input {digest_hex}: {error.details()}"
            raise InputLostError(why) from error
        _log.warning("input.retry", lease_id=order.lease_id, code=error.code().name)
        return None
    except ConnectionLostError:
        return None
    if offset != buffer.size_bytes:
        raise InputLostError(f"the input has {offset} bytes, {buffer.size_bytes} were ordered")
    return digest.digest()
