"""A prover offers only after known answers, uses only keys that hold together, and shows both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from partita.groth16.native import NativeBackend
from partita.service.grpcio import reason_of
from partita.v1 import dispatch_pb2, prover_pb2, prover_pb2_grpc, types_pb2
from tests.prover.circuits_on_disk import ONE_CONSTRAINT, add, add_with_another_b2_point, lease_of
from tests.prover.peer import serving
from tests.prover.whole import GatedBackend, offered, outcome, prover_on, run_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path


class WrongSums(NativeBackend):
    """A backend whose small sums are wrong: it gives the first point back."""

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        return super().lincomb(curve, group, points[:1], scalars[:1])


@asynccontextmanager
async def own_port(data_dir: Path) -> AsyncIterator[prover_pb2_grpc.ProverServiceStub]:
    async with grpc.aio.insecure_channel(run_file(data_dir)["address"]) as channel:
        yield prover_pb2_grpc.ProverServiceStub(channel)


async def steps_of(data_dir: Path, circuit_id: str) -> list[prover_pb2.SelfTestResponse]:
    async with own_port(data_dir) as stub:
        request = prover_pb2.SelfTestRequest(circuit_id=circuit_id)
        return [step async for step in stub.SelfTest(request)]


async def test_a_backend_without_the_known_answers_offers_nothing_and_says_why(
    tmp_path: Path,
) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine", WrongSums()):
        session = await offered(peer, tmp_path / "theirs")
        (offer,) = session.hellos[-1].offers
        assert "self-test: bn254 snarkjs proof verifies" in offer.unusable_reason
        steps = await steps_of(tmp_path / "mine", ONE_CONSTRAINT.name)
        assert [step.step for step in steps if not step.ok] == ["bn254 snarkjs proof verifies"]


async def test_a_key_whose_b_queries_differ_is_failed_with_the_reason(tmp_path: Path) -> None:
    entry = add_with_another_b2_point(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        session.desire(keys=(entry.manifest_sha256,))
        failed = dispatch_pb2.HeldKey.STATE_FAILED
        actual = await session.actual(lambda a: a.keys and a.keys[0].state == failed)
        reason = "self-test: queries b1 and b2 agree: their points are not the same ones"
        assert actual.keys[0].reason.startswith(f"{reason} (build ")


async def test_a_self_test_streams_each_step_and_tests_a_key_in_memory(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        steps = await steps_of(tmp_path / "mine", ONE_CONSTRAINT.name)
        assert all(step.ok for step in steps)
        assert steps[-1].step == "key"
        assert "not in memory" in steps[-1].detail
        session.desire(keys=(entry.manifest_sha256,))
        ready = dispatch_pb2.HeldKey.STATE_READY
        await session.actual(lambda a: a.keys and a.keys[0].state == ready)
        steps = await steps_of(tmp_path / "mine", ONE_CONSTRAINT.name)
        assert all(step.ok for step in steps)
        assert steps[-1].step == "queries b1 and b2 agree"


async def test_a_self_test_waits_for_an_idle_prover_and_a_known_circuit(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
    backend = GatedBackend()
    async with serving() as peer, prover_on(peer, tmp_path / "mine", backend):
        session = await offered(peer, tmp_path / "theirs")
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await steps_of(tmp_path / "mine", "nothing")
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
        assert reason_of(unknown.value) == "UNKNOWN_CIRCUIT"
        session.desire(lease_of(entry, data))
        # Not PROVING: the Actual that would say so may be made only after the step into FINISHING.
        await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FINISHING)
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await steps_of(tmp_path / "mine", ONE_CONSTRAINT.name)
        assert busy.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_of(busy.value) == "BUSY"
        backend.open()
        await outcome(session)
