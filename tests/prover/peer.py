"""A scheduler's prover port for tests: it speaks the wire and decides nothing by itself."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.duration_pb2 import Duration

from partita.circuits.catalogue import Catalogue
from partita.v1 import (
    blobs_pb2,
    blobs_pb2_grpc,
    dispatch_pb2,
    dispatch_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    types_pb2,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

TIMEOUT_S = 30.0
CHUNK_BYTES = 64 << 10


@dataclass
class Session:
    """One Work stream: what came, in order, and what shall go."""

    received: list[dispatch_pb2.WorkRequest] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    outgoing: asyncio.Queue[dispatch_pb2.WorkResponse | grpc.StatusCode | None] = field(
        default_factory=asyncio.Queue
    )
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    half_closed: bool = False
    revision: int = 0

    @property
    def hellos(self) -> list[dispatch_pb2.Hello]:
        return [x.hello for x in self.received if x.WhichOneof("message") == "hello"]

    @property
    def actuals(self) -> list[dispatch_pb2.Actual]:
        return [x.actual for x in self.received if x.WhichOneof("message") == "actual"]

    async def until(self, holds: Callable[[Session], Any]) -> Any:
        """Wait until something holds of the session, and return it."""
        async with asyncio.timeout(TIMEOUT_S), self.changed:
            while not (found := holds(self)):
                await self.changed.wait()
            return found

    async def actual(self, holds: Callable[[dispatch_pb2.Actual], Any]) -> dispatch_pb2.Actual:
        """Wait until the newest Actual is as said, and return it."""
        await self.until(lambda s: s.actuals and holds(s.actuals[-1]))
        return self.actuals[-1]

    async def lease(
        self, lease_id: str, holds: Callable[[dispatch_pb2.HeldLease], Any]
    ) -> dispatch_pb2.HeldLease:
        """Wait until a lease is as said in the newest Actual, and return it."""
        actual = await self.actual(
            lambda a: any(x.lease_id == lease_id and holds(x) for x in a.leases)
        )
        return next(x for x in actual.leases if x.lease_id == lease_id)

    def welcome(self, epoch: int = 1, revision: bytes = b"", beat_s: int = 5) -> None:
        self.outgoing.put_nowait(
            dispatch_pb2.WorkResponse(
                welcome=dispatch_pb2.Welcome(
                    epoch=epoch,
                    contract=1,
                    catalogue_revision=revision,
                    beat=Duration(seconds=beat_s),
                )
            )
        )

    def desire(
        self,
        *leases: dispatch_pb2.Lease,
        keys: tuple[bytes, ...] = (),
        epoch: int = 1,
        drain: bool = False,
        catalogue_revision: bytes = b"",
    ) -> int:
        """Send a Desired of exactly this; returns its revision."""
        self.revision += 1
        self.outgoing.put_nowait(
            dispatch_pb2.WorkResponse(
                desired=dispatch_pb2.Desired(
                    epoch=epoch,
                    revision=self.revision,
                    leases=leases,
                    keys=keys or sorted({x.manifest_sha256 for x in leases}),
                    drain=drain,
                    catalogue_revision=catalogue_revision,
                )
            )
        )
        return self.revision

    def end(self) -> None:
        """End the stream from this side."""
        self.outgoing.put_nowait(None)

    def fail(self, code: grpc.StatusCode) -> None:
        """End the stream with an error."""
        self.outgoing.put_nowait(code)


class Peer(
    dispatch_pb2_grpc.DispatchServiceServicer,
    blobs_pb2_grpc.BlobServiceServicer,
    fleet_pb2_grpc.FleetServiceServicer,
):
    """Serves Work, Download and ListCircuits from what the test put in."""

    def __init__(self) -> None:
        self.address = ""
        self.sessions: asyncio.Queue[Session] = asyncio.Queue()
        self.blobs: dict[bytes, bytes] = {}
        self.circuits: list[fleet_pb2.Circuit] = []
        self.catalogue_revision = b""
        self.downloads: list[bytes] = []
        self.asked = asyncio.Event()
        self.hold_downloads: asyncio.Event | None = None

    async def session(self) -> Session:
        """Wait for the next Work stream."""
        async with asyncio.timeout(TIMEOUT_S):
            return await self.sessions.get()

    def put(self, data: bytes) -> types_pb2.BlobRef:
        """Serve a blob."""
        digest = hashlib.sha256(data).digest()
        self.blobs[digest] = data
        return types_pb2.BlobRef(sha256=digest, size_bytes=len(data))

    def add_catalogue(self, root: Path) -> bytes:
        """Serve the circuits of a catalogue; returns its revision."""
        state = Catalogue(root).scan()
        self.circuits = []
        for entry in state.circuits.values():
            files = [
                fleet_pb2.Circuit.File(role=role, blob=self.put(entry.file(role).read_bytes()))
                for role in entry.manifest.files
            ]
            self.circuits.append(
                fleet_pb2.Circuit(
                    circuit_id=entry.circuit_id,
                    manifest_sha256=entry.manifest_sha256,
                    files=files,
                    manifest_json=entry.manifest.to_json().decode(),
                )
            )
        self.catalogue_revision = state.revision
        return state.revision

    async def Work(  # noqa: N802
        self, request_iterator: AsyncIterator[dispatch_pb2.WorkRequest], context: Any
    ) -> AsyncIterator[dispatch_pb2.WorkResponse]:
        session = Session()
        # Not left to the `finally` below: a handler that is cancelled while its answer is sent
        # stands at `yield`, and is closed only when Python collects it.
        context.add_done_callback(lambda _: session.ended.set())
        self.sessions.put_nowait(session)

        async def receive() -> None:
            async for request in request_iterator:
                async with session.changed:
                    session.received.append(request)
                    session.changed.notify_all()
            session.half_closed = not context.cancelled()
            session.end()

        receiver = asyncio.create_task(receive())
        try:
            while (response := await session.outgoing.get()) is not None:
                if isinstance(response, grpc.StatusCode):
                    await context.abort(response, "as the test wants")
                    return
                yield response
        finally:
            receiver.cancel()
            await asyncio.gather(receiver, return_exceptions=True)

    async def Download(  # noqa: N802
        self, request: blobs_pb2.DownloadRequest, context: Any
    ) -> AsyncIterator[blobs_pb2.DownloadResponse]:
        self.downloads.append(request.blob.sha256)
        self.asked.set()
        if self.hold_downloads is not None:
            await self.hold_downloads.wait()
        data = self.blobs.get(request.blob.sha256)
        if data is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "1 blobs are missing")
            return
        for start in range(request.offset, len(data), CHUNK_BYTES):
            yield blobs_pb2.DownloadResponse(chunk=data[start : start + CHUNK_BYTES])

    async def ListCircuits(  # noqa: N802
        self, request: fleet_pb2.ListCircuitsRequest, context: Any
    ) -> fleet_pb2.ListCircuitsResponse:
        return fleet_pb2.ListCircuitsResponse(
            circuits=self.circuits, catalogue_revision=self.catalogue_revision
        )


@asynccontextmanager
async def serving(address: str = "127.0.0.1:0") -> AsyncIterator[Peer]:
    """A peer on a port of its own."""
    peer = Peer()
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    dispatch_pb2_grpc.add_DispatchServiceServicer_to_server(peer, server)
    blobs_pb2_grpc.add_BlobServiceServicer_to_server(peer, server)
    fleet_pb2_grpc.add_FleetServiceServicer_to_server(peer, server)
    port = server.add_insecure_port(address)
    peer.address = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield peer
    finally:
        await server.stop(0)
