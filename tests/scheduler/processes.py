"""The scheduler as a process of its own, on ports of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from partita.service.grpcio import channel_options
from partita.v1 import proving_pb2_grpc
from tests.scheduler.peer import ROOT


@asynccontextmanager
async def process(data_dir: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a scheduler; it is killed at the end if it still runs."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "partita.scheduler",
        "--data-dir",
        str(data_dir),
        "--listen",
        "127.0.0.1:0",
        "--prover-listen",
        "127.0.0.1:0",
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "services")},
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def ready(child: asyncio.subprocess.Process, data_dir: Path) -> dict[str, Any]:
    """Read its log until it is ready; return its addresses."""
    assert child.stderr is not None
    async for line in child.stderr:
        if json.loads(line).get("event") == "scheduler.ready":
            break
    addresses: dict[str, Any] = json.loads((data_dir / "run" / "scheduler.json").read_text())
    assert addresses["pid"] == child.pid
    return addresses


@asynccontextmanager
async def calling(address: str) -> AsyncIterator[proving_pb2_grpc.ProvingServiceStub]:
    """A stub of the scheduler at an address."""
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        yield proving_pb2_grpc.ProvingServiceStub(channel)
