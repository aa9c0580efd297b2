"""A prover as a real process: signals, exit codes, memory limits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from partita.v1 import dispatch_pb2, types_pb2
from tests.prover.circuits_on_disk import ONE_CONSTRAINT, add, lease_of
from tests.prover.peer import TIMEOUT_S, Peer, Session, serving
from tests.system.cluster import FAULTY_PROVER, Gate
from tests.system.faulty_prover import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()


@asynccontextmanager
async def process_on(
    peer: Peer, data_dir: Path, gate: Gate | None = None, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A prover process; with a gate, its proofs wait on the device until that is opened."""
    environment = {
        **os.environ,
        "PARTITA_PROVER__PROVER_ID": "p-1",
        "PARTITA_PROVER__SCHEDULERS": f'["{peer.address}"]',
        "PARTITA_PROVER__LISTEN": "127.0.0.1:0",
        "PARTITA_PROVER__DATA_DIR": str(data_dir),
        "PARTITA_PROVER__MEMORY": "4GiB",
        "PARTITA_PROVER__BACKEND": "reference",
        **variables,
    }
    program = ["-m", "partita.prover"]
    if gate is not None:
        program = [str(FAULTY_PROVER)]
        fault = Fault(journal=str(data_dir / "journal"), gate=str(gate.path))
        environment.update(fault.environment())
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def proving(peer: Peer, catalogue: Path) -> tuple[Session, bytes]:
    """Bring one partition onto the device of a prover with a gate."""
    entry = add(catalogue, ONE_CONSTRAINT)
    revision = peer.add_catalogue(catalogue)
    session = await peer.session()
    session.welcome(revision=revision)
    await session.until(lambda s: s.hellos and s.hellos[-1].offers)
    session.desire(lease_of(entry, (ONE_CONSTRAINT / "witness.wtns").read_bytes()))
    await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_PROVING)
    return session, entry.manifest_sha256


async def exit_code(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(TIMEOUT_S):
        return await process.wait()


async def test_sigterm_finishes_what_is_proved_then_exits_zero(tmp_path: Path, gate: Gate) -> None:
    async with serving() as peer, process_on(peer, tmp_path, gate) as process:
        session, key = await proving(peer, tmp_path / "circuits")
        process.send_signal(signal.SIGTERM)
        actual = await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_DRAINING)
        assert actual.leases[0].phase == types_pb2.PHASE_PROVING
        gate.open()
        held = await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FINISHED)
        assert held.WhichOneof("outcome") == "proved"
        assert process.returncode is None
        session.desire(keys=(key,))
        assert await exit_code(process) == 0
        async with asyncio.timeout(TIMEOUT_S):
            await session.ended.wait()
        assert session.half_closed
        assert not session.actuals[-1].leases


async def test_at_the_end_of_the_grace_the_rest_is_handed_back_and_the_exit_is_zero(
    tmp_path: Path, gate: Gate
) -> None:
    async with (
        serving() as peer,
        process_on(peer, tmp_path, gate, PARTITA_PROVER__DRAIN_GRACE="0") as process,
    ):
        session, _ = await proving(peer, tmp_path / "circuits")
        process.send_signal(signal.SIGTERM)
        assert await exit_code(process) == 0
        async with asyncio.timeout(TIMEOUT_S):
            await session.ended.wait()
        failure = session.actuals[-1].leases[0].failure
        assert failure.kind == types_pb2.FAILURE_KIND_HANDED_BACK


async def test_a_second_sigterm_ends_the_process_at_once(tmp_path: Path, gate: Gate) -> None:
    async with serving() as peer, process_on(peer, tmp_path, gate) as process:
        session, _ = await proving(peer, tmp_path / "circuits")
        process.send_signal(signal.SIGTERM)
        await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_DRAINING)
        process.send_signal(signal.SIGTERM)
        assert await exit_code(process) == 128 + signal.SIGTERM


async def test_a_prover_without_a_scheduler_drains_at_once(tmp_path: Path) -> None:
    async with serving() as peer, process_on(peer, tmp_path) as process:
        await peer.session()
        process.send_signal(signal.SIGTERM)
        assert await exit_code(process) == 0


async def test_the_own_address_that_is_taken_is_said_and_nothing_starts(tmp_path: Path) -> None:
    async with (
        serving() as peer,
        process_on(peer, tmp_path, PARTITA_PROVER__LISTEN=peer.address) as process,
    ):
        assert await exit_code(process) == 2


async def test_with_a_data_limit_a_partition_is_still_proved(tmp_path: Path) -> None:
    entry = add(tmp_path / "circuits", ONE_CONSTRAINT)
    async with (
        serving() as peer,
        process_on(
            peer,
            tmp_path,
            PARTITA_PROVER__BACKEND="native",
            PARTITA_PROVER__LIMIT_DATA="true",
            PARTITA_PROVER__MEMORY="512MiB",
        ),
    ):
        session = await peer.session()
        session.welcome(revision=peer.add_catalogue(tmp_path / "circuits"))
        await session.until(lambda s: s.hellos and s.hellos[-1].offers)
        reserved = types_pb2.Bytes(host=256 << 20)
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        session.desire(lease_of(entry, data, reserved=reserved))
        held = await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FINISHED)
        assert held.WhichOneof("outcome") == "proved"


def test_memory_beyond_the_data_limit_is_refused_and_not_killed() -> None:
    code = (
        "from partita.prover.memory import limit_data_bytes\n"
        "limit_data_bytes(1 << 30)\n"
        "try:\n    bytearray(2 << 30)\nexcept MemoryError:\n    print('refused')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert ended.stdout == "refused\n"
