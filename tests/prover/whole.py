"""A whole prover in this process, connected to a peer: what its tests share."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from partita.circuits.snarkjs_json import read_public_json, read_verifying_key_json
from partita.groth16.native import NativeBackend
from partita.groth16.reference import ReferenceBackend
from partita.groth16.verifier import Verifier
from partita.prover.app import Prover
from partita.prover.config import ProverConfig
from partita.service.config import load
from partita.v1 import dispatch_pb2, types_pb2
from tests.prover.peer import TIMEOUT_S, Peer, Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from partita.circuits.catalogue import Entry
    from partita.groth16.backend import Backend


def config_of(peer: Peer, data_dir: Path, **fields: Any) -> ProverConfig:
    given: dict[str, Any] = {
        "prover_id": "p-1",
        "schedulers": (peer.address,),
        "listen": "127.0.0.1:0",
        "data_dir": data_dir,
        "memory": 8 << 30,
        "backoff": 10**6,
        "check_invariants": True,
    }
    return load(ProverConfig, {}, "test", **{**given, **fields})


@asynccontextmanager
async def prover_on(
    peer: Peer, data_dir: Path, backend: Backend | None = None, **fields: Any
) -> AsyncIterator[Prover]:
    """A prover connected to a peer; drained with no grace at the end."""
    config = config_of(peer, data_dir, **{"drain_grace": 0, **fields})
    prover = Prover(config, backend or NativeBackend())
    task = asyncio.create_task(prover.run())
    try:
        yield prover
    finally:
        prover.stop("the test is over")
        async with asyncio.timeout(TIMEOUT_S):
            await task


async def offered(peer: Peer, catalogue: Path) -> Session:
    """Welcome the prover and wait until it offers the peer's circuits."""
    revision = peer.add_catalogue(catalogue)
    session = await peer.session()
    session.welcome(revision=revision)
    await session.until(lambda s: s.hellos and len(s.hellos[-1].offers) == len(peer.circuits))
    return session


async def outcome(session: Session, lease_id: str = "1.1") -> dispatch_pb2.HeldLease:
    """Wait until a lease is finished and freed."""
    return await session.lease(lease_id, lambda x: x.phase == types_pb2.PHASE_FINISHED)


def verified(entry: Entry, vector: Path, statement: bytes, proof: bytes) -> bool:
    key = read_verifying_key_json("vk", (vector / "verification_key.json").read_bytes())
    assert entry.verifying_key() == key
    return Verifier(key).verify(statement, proof)


def statement_of(vector: Path) -> bytes:
    text = (vector / "public.json").read_bytes()
    return read_public_json("public", text, curve_name="bn254")


def run_file(data_dir: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((data_dir / "run" / "p-1.json").read_text())
    return content


def proves() -> bool:
    """Whether this is the thread of proofs: self-tests go undisturbed."""
    return threading.current_thread().name.startswith("device")


class GatedBackend(ReferenceBackend):
    """The reference, which waits at the end of each proof until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        if proves():
            self.reached.release()
            self.gate.acquire()
        return super().lincomb(curve, group, points, scalars)

    def open(self) -> None:
        self.gate.release(1000)
