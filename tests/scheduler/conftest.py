"""Fixtures: a catalogue with one circuit, a scheduler on it, test provers."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit
from partita.groth16.native import NativeBackend
from tests.scheduler.peer import PRODUCT, Connect, Peer, Prover, connected
from tests.scheduler.running import Running, running


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


@pytest.fixture
async def service(data_dir: Path, prover: Prover) -> AsyncIterator[Running]:
    async with running(data_dir, prover) as service:
        yield service


@pytest.fixture
async def connect(service: Running) -> AsyncIterator[Connect]:
    """Connects test provers that are cut off when the test ends."""
    async with AsyncExitStack() as stack:

        async def open_peer(prover_id: str = "gpu-0", **settings: Any) -> Peer:
            peer = service.peer(prover_id, **settings)
            await stack.enter_async_context(connected(peer))
            await peer.greeted.wait()
            return peer

        yield open_peer
