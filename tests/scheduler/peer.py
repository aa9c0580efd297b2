"""A test prover: speaks the provers' wire over a real channel and proves with the native backend.

It reconciles like a prover does, without a pipeline: each new lease fetches its input and becomes
an outcome; `work` may be closed to hold leases, `spoil` may change a proof on its way out. It
proves that a public output is the product of two inputs (tests/vectors/edge/one-constraint).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from partita.circuits.wtns import read_wtns, write_wtns
from partita.circuits.zkey import read_zkey
from partita.groth16.curves import curve_named
from partita.groth16.native import NativeBackend
from partita.groth16.prover import prove
from partita.groth16.witness import Witness
from partita.service.grpcio import channel_options
from partita.v1 import blobs_pb2, blobs_pb2_grpc, dispatch_pb2, dispatch_pb2_grpc, types_pb2

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "tests/vectors/edge/one-constraint-bn254"
CURVE = "bn254"
MIB = 1 << 20
KEY = types_pb2.Bytes(host=10 * MIB)
PEAK = types_pb2.Bytes(host=4 * MIB)


def product_witness(left: int, right: int) -> Witness:
    """Return the witness (1, product, left, right)."""
    r = curve_named(CURVE).r
    values = (1, left * right % r, left, right)
    return Witness(CURVE, b"".join(value.to_bytes(32, "little") for value in values))


def product_wtns(left: int, right: int) -> bytes:
    """Return the file of a witness."""
    return write_wtns(product_witness(left, right))


def product_statement(left: int, right: int) -> bytes:
    """Return the statement of a witness: the product."""
    return (left * right % curve_named(CURVE).r).to_bytes(32, "little")


class Prover:
    """Proves products; loaded once for all tests."""

    def __init__(self) -> None:
        self._backend = NativeBackend()
        path = PRODUCT / "circuit.zkey"
        self._key = self._backend.load(read_zkey(str(path), path.read_bytes()), check=True)

    def proof(self, witness: Witness) -> bytes:
        return prove(self._backend, self._key, witness).to_bytes()


def witness_of(input_format: str, data: bytes) -> Witness:
    if input_format == "wtns":
        return read_wtns("input", data)
    values = json.loads(data)
    return product_witness(int(values["left"]), int(values["right"]))


Connect = Callable[..., Awaitable["Peer"]]
"""Connects a test prover: (prover_id, **fields of Peer)."""

Spoil = Callable[[dispatch_pb2.Lease, bytes], bytes]


@dataclass
class Peer:
    """One stream of one prover."""

    address: str
    prover: Prover
    manifest_sha256: bytes
    prover_id: str = "gpu-0"
    instance_id: str = "instance-0"
    contract: tuple[int, int] = (1, 1)
    max_leases: int = 2
    total_bytes: int = 64 * MIB
    highest_epoch: int = 0
    spoil: Spoil = lambda lease, proof: proof
    work: asyncio.Event = field(default_factory=asyncio.Event)
    held: dict[str, dispatch_pb2.HeldLease] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)
    proved: list[tuple[str, int]] = field(default_factory=list)
    """(job_id, index) of every proof made."""
    welcome: dispatch_pb2.Welcome | None = None
    desired: dispatch_pb2.Desired = field(default_factory=dispatch_pb2.Desired)
    most_held: int = 0
    greeted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the scheduler has let it in."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a lease is held."""

    def __post_init__(self) -> None:
        self.work.set()
        self._changed = asyncio.Event()
        self._news = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def hello(self) -> dispatch_pb2.Hello:
        offer = dispatch_pb2.CircuitOffer(
            circuit_id="product",
            manifest_sha256=self.manifest_sha256,
            key=KEY,
            peak=PEAK,
            after_release=PEAK,
            input_formats=["wtns", "circom.json"],
        )
        offer.load_time.FromSeconds(1)
        offer.expected.FromSeconds(1)
        return dispatch_pb2.Hello(
            prover_id=self.prover_id,
            instance_id=self.instance_id,
            contract_min=self.contract[0],
            contract_max=self.contract[1],
            total=types_pb2.Bytes(host=self.total_bytes),
            max_leases=self.max_leases,
            express_leases=1,
            highest_epoch=self.highest_epoch,
            offers=[offer],
        )

    def actual(self) -> dispatch_pb2.Actual:
        state = dispatch_pb2.HeldKey.STATE_READY
        return dispatch_pb2.Actual(
            applied=self.desired.revision,
            condition=dispatch_pb2.CONDITION_READY,
            leases=list(self.held.values()),
            keys=[
                dispatch_pb2.HeldKey(manifest_sha256=key, state=state, held=KEY)
                for key in sorted(self.keys)
            ],
        )

    async def told_of_catalogue(self, after: bytes) -> bytes:
        """Return the first catalogue revision of a Desired that is not `after`."""
        while self.desired.catalogue_revision in (b"", after):
            self._news.clear()
            await self._news.wait()
        return self.desired.catalogue_revision

    async def run(self) -> None:
        """Serve until the stream ends; raises AioRpcError as the scheduler ended it."""
        self.desired = dispatch_pb2.Desired()
        async with grpc.aio.insecure_channel(self.address, options=channel_options()) as channel:
            self._blobs = blobs_pb2_grpc.BlobServiceStub(channel)
            call = dispatch_pb2_grpc.DispatchServiceStub(channel).Work()
            # Nothing is sent between Hello and Welcome: a write that meets the end of the stream
            # would hide the scheduler's reason behind an INTERNAL of the client's own.
            self._changed.clear()
            sender = asyncio.create_task(self._send(call))
            try:
                await call.write(dispatch_pb2.WorkRequest(hello=self.hello()))
                async for message in call:
                    if message.HasField("welcome"):
                        self.welcome = message.welcome
                        self.greeted.set()
                        self._changed.set()
                    else:
                        self._reconcile(message.desired)
            finally:
                call.cancel()
                tasks = [sender, *self._tasks.values()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self._tasks.clear()

    async def _send(self, call: grpc.aio.StreamStreamCall) -> None:  # type: ignore[type-arg]
        while True:
            await self._changed.wait()
            self._changed.clear()
            await call.write(dispatch_pb2.WorkRequest(actual=self.actual()))

    def _reconcile(self, desired: dispatch_pb2.Desired) -> None:
        wanted = {lease.lease_id: lease for lease in desired.leases}
        for lease_id in set(self.held) - set(wanted):
            task = self._tasks.pop(lease_id, None)
            if task is not None:
                task.cancel()
            del self.held[lease_id]
        for lease_id, lease in wanted.items():
            held = self.held.get(lease_id)
            if held is None:
                held = self.held[lease_id] = dispatch_pb2.HeldLease(
                    lease_id=lease_id,
                    job_id=lease.job_id,
                    partition_index=lease.partition_index,
                    attempt=lease.attempt,
                    phase=types_pb2.PHASE_FETCHING,
                    held=lease.reserved,
                )
            if lease_id not in self._tasks and held.WhichOneof("outcome") is None:
                self._tasks[lease_id] = asyncio.create_task(self._prove(lease, held))
        self.keys = set(desired.keys)
        self.desired = desired
        self.most_held = max(self.most_held, len(self.held))
        self._news.set()
        if self.held:
            self.started.set()
        self._changed.set()

    async def _prove(self, lease: dispatch_pb2.Lease, held: dispatch_pb2.HeldLease) -> None:
        data = lease.inline or await download(self._blobs, lease.input)
        assert hashlib.sha256(data).digest() == lease.input.sha256
        await self.work.wait()
        witness = witness_of(lease.input_format, data)
        proof = await asyncio.to_thread(self.prover.proof, witness)
        self.proved.append((lease.job_id, lease.partition_index))
        held.phase = types_pb2.PHASE_FINISHED
        held.proved.CopyFrom(
            dispatch_pb2.Proved(
                proof=self.spoil(lease, proof),
                statement=b"" if lease.statement_sha256 else bytes(witness.statement(1)),
                peak=lease.reserved,
            )
        )
        self._changed.set()


@asynccontextmanager
async def connected(peer: Peer) -> AsyncIterator[Peer]:
    """Run a peer beside the body; its stream is cut at the end."""
    task = asyncio.create_task(peer.run())
    try:
        yield peer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def download(
    stub: blobs_pb2_grpc.BlobServiceStub, blob: types_pb2.BlobRef, offset: int = 0
) -> bytes:
    """Return a blob."""
    parts = [
        part.chunk
        async for part in stub.Download(blobs_pb2.DownloadRequest(blob=blob, offset=offset))
    ]
    return b"".join(parts)
