"""Inputs: from the lease or by download, checked, and unmapped for good."""

from __future__ import annotations

import hashlib

import grpc
import pytest

from partita.groth16.errors import ResourceError
from partita.prover.core.model import BlobRef, Bytes, LeaseOrder
from partita.prover.failures import InputLostError
from partita.prover.inputs import InputBuffer, fetch_input
from tests.prover.peer import CHUNK_BYTES, Peer, serving

NOBODY = "127.0.0.1:1"


def order_of(data: bytes, inline: bytes = b"", reserved_bytes: int = 1 << 30) -> LeaseOrder:
    return LeaseOrder(
        lease_id="1.1",
        job_id="job",
        partition_index=0,
        attempt=1,
        circuit_id="c",
        manifest_sha256=b"m" * 32,
        input=BlobRef(hashlib.sha256(data).digest(), len(data)),
        input_format="wtns",
        reserved=Bytes(reserved_bytes),
        inline=inline,
    )


async def fetch(peer: Peer, order: LeaseOrder, *, first: str = "") -> bytes:
    """Fetch through a channel to the peer; `first` is the address of the first try."""
    addresses = [*([first] if first else []), peer.address]
    channels = [grpc.aio.insecure_channel(address) for address in addresses]
    turns = iter(channels)

    async def channel() -> grpc.aio.Channel:
        return next(turns)

    try:
        buffer = await fetch_input(order, channel, retry_s=0)
        data = bytes(buffer.data)
        assert buffer.release()
        return data
    finally:
        for opened in channels:
            await opened.close()


@pytest.mark.parametrize("size_bytes", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1])
async def test_a_download_of_any_size_is_complete(size_bytes: int) -> None:
    data = bytes(range(256)) * (size_bytes // 256 + 1)
    data = data[:size_bytes]
    async with serving() as peer:
        peer.put(data)
        assert await fetch(peer, order_of(data)) == data


async def test_an_inline_input_needs_no_scheduler() -> None:
    async with serving() as peer:
        assert await fetch(peer, order_of(b"input", inline=b"input")) == b"input"
        assert peer.downloads == []


async def test_a_scheduler_that_is_away_is_asked_again() -> None:
    async with serving() as peer:
        peer.put(b"input")
        assert await fetch(peer, order_of(b"input"), first=NOBODY) == b"input"


@pytest.mark.parametrize("served", [b"inpuT", b"inpu", b"input and more"])
async def test_other_bytes_than_ordered_are_lost(served: bytes) -> None:
    async with serving() as peer:
        order = order_of(b"input")
        peer.blobs[order.input.sha256] = served
        with pytest.raises(InputLostError):
            await fetch(peer, order)


@pytest.mark.parametrize("inline", [b"inpuT", b"inpu"])
async def test_another_inline_input_than_ordered_is_lost(inline: bytes) -> None:
    async with serving() as peer:
        with pytest.raises(InputLostError):
            await fetch(peer, order_of(b"input", inline=inline))


async def test_an_input_beyond_what_the_lease_may_hold_is_refused_before_it_is_read() -> None:
    async with serving() as peer:
        with pytest.raises(ResourceError, match="reserves only 4"):
            await fetch(peer, order_of(b"input", reserved_bytes=4))
        assert peer.downloads == []


def test_a_buffer_that_somebody_still_views_says_that_it_is_not_released() -> None:
    buffer = InputBuffer(8)
    view = buffer.data
    assert not buffer.release()
    view.release()
