"""A real scheduler in this process, a catalogue with one circuit, clients and test provers."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit
from partita.groth16.native import NativeBackend
from partita.scheduler.app import Scheduler
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.store import Store
from partita.service.config import load
from partita.service.grpcio import channel_options
from partita.v1 import blobs_pb2_grpc, fleet_pb2_grpc, proving_pb2, proving_pb2_grpc, types_pb2
from tests.scheduler.peer import PRODUCT, Peer, Prover, connected, product_wtns

LISTEN = {"listen": "127.0.0.1:0", "prover_listen": "127.0.0.1:0"}


@dataclass
class Running:
    """A scheduler with stubs of its public services."""

    scheduler: Scheduler
    proving: proving_pb2_grpc.ProvingServiceStub
    blobs: blobs_pb2_grpc.BlobServiceStub
    fleet: fleet_pb2_grpc.FleetServiceStub
    channel: grpc.aio.Channel
    manifest_sha256: bytes
    prover: Prover

    def peer(self, prover_id: str = "gpu-0", **settings: Any) -> Peer:
        settings.setdefault("instance_id", f"{prover_id}-process-1")
        return Peer(
            address=self.scheduler.addresses.prover,
            prover=self.prover,
            manifest_sha256=self.manifest_sha256,
            prover_id=prover_id,
            **settings,
        )

    async def submit(
        self, pairs: list[tuple[int, int]], **fields: Any
    ) -> proving_pb2.SubmitJobResponse:
        """Submit products as inline witnesses."""
        return await self.proving.SubmitJob(request_of(pairs, **fields))

    async def end_of(self, job_id: str) -> proving_pb2.Job:
        """Wait for the end of a job."""
        request = proving_pb2.GetJobRequest(job_id=job_id)
        request.wait.FromSeconds(60)
        return (await self.proving.GetJob(request)).job

    async def results(self, job_id: str) -> list[proving_pb2.Partition]:
        request = proving_pb2.ListPartitionsRequest(job_id=job_id)
        return list((await self.proving.ListPartitions(request)).partitions)


def request_of(pairs: list[tuple[int, int]], **fields: Any) -> proving_pb2.SubmitJobRequest:
    """Return a job of products."""
    values = {
        "circuit_id": "product",
        "input_format": "wtns",
        "partitions": [
            proving_pb2.PartitionInput(inline=product_wtns(left, right)) for left, right in pairs
        ],
        **fields,
    }
    return proving_pb2.SubmitJobRequest(**values)


@pytest.fixture(scope="session")
def prover() -> Prover:
    return Prover()


@pytest.fixture(scope="session")
def circuits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue that holds the circuit "product"."""
    root = tmp_path_factory.mktemp("catalogue") / "circuits"
    sources = CircuitSources(zkey=PRODUCT / "circuit.zkey", wasm=PRODUCT / "circuit.wasm")
    add_circuit(Catalogue(root), "product", sources, NativeBackend())
    return root


@pytest.fixture
def data_dir(tmp_path: Path, circuits: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    shutil.copytree(circuits, path / "circuits")
    return path


@asynccontextmanager
async def running(
    data_dir: Path, prover: Prover, store: Store | None = None, **settings: Any
) -> AsyncIterator[Running]:
    """Run a scheduler on a data directory."""
    settings = {**LISTEN, "check_invariants": True, "stop_grace": "2s", **settings}
    config = load(SchedulerConfig, {"data_dir": data_dir, **settings}, "test")
    scheduler = await Scheduler.start(config, store)
    try:
        async with grpc.aio.insecure_channel(
            scheduler.addresses.client, options=channel_options()
        ) as channel:
            yield Running(
                scheduler,
                proving_pb2_grpc.ProvingServiceStub(channel),
                blobs_pb2_grpc.BlobServiceStub(channel),
                fleet_pb2_grpc.FleetServiceStub(channel),
                channel,
                Catalogue(data_dir / "circuits").show("product").manifest_sha256,
                prover,
            )
        assert not scheduler.engine.broken.done(), scheduler.engine.broken.result()
    finally:
        await scheduler.stop()


@pytest.fixture
async def service(data_dir: Path, prover: Prover) -> AsyncIterator[Running]:
    async with running(data_dir, prover) as service:
        yield service


Connect = Callable[..., Any]


@pytest.fixture
async def connect(service: Running) -> AsyncIterator[Connect]:
    """Connects test provers that are cut off when the test ends."""
    async with AsyncExitStack() as stack:

        async def open_peer(prover_id: str = "gpu-0", **settings: Any) -> Peer:
            peer = service.peer(prover_id, **settings)
            return await stack.enter_async_context(connected(peer))

        yield open_peer


def blob_ref(data: bytes) -> types_pb2.BlobRef:
    import hashlib

    return types_pb2.BlobRef(sha256=hashlib.sha256(data).digest(), size_bytes=len(data))
