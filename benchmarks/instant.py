"""The load tool: provers that speak the wire and need no time, with proofs made beforehand.

Each is one Work stream. It takes in every Desired, gives each new lease its outcome at once and
answers with one Actual, as the protocol wants it: `applied` is the Desired's revision, outcomes
stay until their leases leave. Proofs are looked up by the digest of the lease's input.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc

from partita.circuits.wtns import write_wtns
from partita.groth16.curves import curve_named
from partita.groth16.prover import prove
from partita.groth16.witness import Witness
from partita.service.grpcio import channel_options
from partita.v1 import dispatch_pb2, dispatch_pb2_grpc, types_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from partita.groth16.backend import Backend, LoadedKey

MAX_LEASES = 3
_CONTRACT = 1
_KEY_BYTES = 10 << 20
_PEAK_BYTES = 1 << 20
_TOTAL_BYTES = 1 << 30
_BEAT_S = 4.0


@dataclass(frozen=True, slots=True)
class Proved:
    """An input of the circuit "product = left · right" with its proof.

    Attributes:
        wtns: the input, a .wtns file.
        proof: in the wire's form.
    """

    wtns: bytes
    proof: bytes

    @property
    def sha256(self) -> bytes:
        """The digest of the input."""
        return hashlib.sha256(self.wtns).digest()


def proved_products(backend: Backend, key: LoadedKey, count: int) -> list[Proved]:
    """Prove `count` different products."""
    r = curve_named(key.head.curve).r
    found = []
    for i in range(count):
        values = (1, (i + 2) * 11 % r, i + 2, 11)
        encoded = b"".join(value.to_bytes(32, "little") for value in values)
        witness = Witness(key.head.curve, encoded)
        found.append(Proved(write_wtns(witness), prove(backend, key, witness).to_bytes()))
    return found


@dataclass
class InstantProver:
    """One prover on one channel of its own.

    Attributes:
        proofs: by digest of the input.
        arrived_s: when each (job_id, partition index) was leased to it first, by time.monotonic.
    """

    address: str
    prover_id: str
    circuit_id: str
    manifest_sha256: bytes
    proofs: Mapping[bytes, bytes]
    max_leases: int = MAX_LEASES
    arrived_s: dict[tuple[str, int], float] = field(default_factory=dict)
    greeted: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._held: dict[str, dispatch_pb2.HeldLease] = {}
        self._desired = dispatch_pb2.Desired()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Serve until the stream ends or the task is cancelled."""
        options = [*channel_options(), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            call = dispatch_pb2_grpc.DispatchServiceStub(channel).Work()
            sender = asyncio.create_task(self._send(call))
            try:
                await call.write(dispatch_pb2.WorkRequest(hello=self._hello()))
                async for message in call:
                    if message.HasField("welcome"):
                        self.greeted.set()
                    else:
                        self._take(message.desired)
                    self._news.set()
            finally:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
                call.cancel()

    async def _send(self, call: Any) -> None:
        await self.greeted.wait()
        while True:
            try:
                async with asyncio.timeout(_BEAT_S):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            await call.write(dispatch_pb2.WorkRequest(actual=self._actual()))

    def _take(self, desired: dispatch_pb2.Desired) -> None:
        now_s = time.monotonic()
        held, self._held = self._held, {}
        for lease in desired.leases:
            known = held.get(lease.lease_id)
            if known is None:
                self.arrived_s.setdefault((lease.job_id, lease.partition_index), now_s)
                known = dispatch_pb2.HeldLease(
                    lease_id=lease.lease_id,
                    job_id=lease.job_id,
                    partition_index=lease.partition_index,
                    attempt=lease.attempt,
                    phase=types_pb2.PHASE_FINISHED,
                    held=lease.reserved,
                    proved=dispatch_pb2.Proved(
                        proof=self.proofs[lease.input.sha256], peak=lease.reserved
                    ),
                )
            self._held[lease.lease_id] = known
        self._desired = desired

    def _hello(self) -> dispatch_pb2.Hello:
        peak = types_pb2.Bytes(host=_PEAK_BYTES)
        offer = dispatch_pb2.CircuitOffer(
            circuit_id=self.circuit_id,
            manifest_sha256=self.manifest_sha256,
            key=types_pb2.Bytes(host=_KEY_BYTES),
            peak=peak,
            after_release=peak,
            input_formats=["wtns"],
        )
        offer.load_time.FromSeconds(1)
        offer.expected.FromSeconds(1)
        return dispatch_pb2.Hello(
            prover_id=self.prover_id,
            instance_id=f"{self.prover_id}-1",
            contract_min=_CONTRACT,
            contract_max=_CONTRACT,
            total=types_pb2.Bytes(host=_TOTAL_BYTES),
            max_leases=self.max_leases,
            offers=[offer],
        )

    def _actual(self) -> dispatch_pb2.Actual:
        return dispatch_pb2.Actual(
            applied=self._desired.revision,
            condition=dispatch_pb2.CONDITION_READY,
            leases=list(self._held.values()),
            keys=[
                dispatch_pb2.HeldKey(
                    manifest_sha256=key,
                    state=dispatch_pb2.HeldKey.STATE_READY,
                    held=types_pb2.Bytes(host=_KEY_BYTES),
                )
                for key in self._desired.keys
            ],
        )


@asynccontextmanager
async def running(provers: list[InstantProver]) -> AsyncIterator[None]:
    """Connect provers for the block; one that ends early ends the block with its error."""
    tasks = [asyncio.create_task(prover.run()) for prover in provers]
    try:
        await asyncio.gather(*(prover.greeted.wait() for prover in provers))
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
