"""A prover of another build is told or, where the operator wants that, refused by name."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from partita.service.fingerprint import Fingerprint, RunningBuild
from partita.service.grpcio import channel_options
from partita.v1 import dispatch_pb2, dispatch_pb2_grpc, types_pb2
from tests.scheduler.peer import Prover
from tests.scheduler.running import Running, refused, running


async def greet(service: Running, build: types_pb2.Fingerprint) -> dispatch_pb2.WorkResponse:
    """Say hello as a prover of that build and return the scheduler's first message."""
    hello = service.peer("gpu-3").hello()
    hello.fingerprint.CopyFrom(build)
    address = service.scheduler.addresses.prover
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        call = dispatch_pb2_grpc.DispatchServiceStub(channel).Work()
        await call.write(dispatch_pb2.WorkRequest(hello=hello))
        answer: dispatch_pb2.WorkResponse = await call.read()
        call.cancel()
    return answer


def build_message(**changed: str | bytes) -> types_pb2.Fingerprint:
    values = {**RunningBuild("native").fingerprint.values(), **changed}
    return types_pb2.Fingerprint(**values)  # type: ignore[arg-type]


async def test_the_exact_gate_refuses_another_build_and_names_each_difference(
    data_dir: Path, prover: Prover
) -> None:
    other = build_message(code_sha256=b"\x0f" * 32, runtime="python 2.7")
    async with running(data_dir, prover, fingerprint_gate="exact") as service:
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH") as refusal:
            await greet(service, other)
        assert refusal.metadata is not None
        assert refusal.metadata["code_sha256"] == "0f" * 32
        assert refusal.metadata["runtime"] == "python 2.7"
        assert set(refusal.metadata) <= {"code_sha256", "runtime", "service"}
        for text in ("'gpu-3'", "code_sha256 is ", f"{'0f' * 32} there", "install the same build"):
            assert text in refusal.message


async def test_the_exact_gate_lets_the_same_build_in_on_whatever_device(
    data_dir: Path, prover: Prover
) -> None:
    same = build_message(backend="cuda", device="H200", driver="575.1", commit="")
    async with running(data_dir, prover, fingerprint_gate="exact") as service:
        assert (await greet(service, same)).HasField("welcome")


async def test_without_the_gate_another_build_is_let_in_and_logged(
    data_dir: Path, prover: Prover, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(data_dir, prover) as service:
        assert (await greet(service, types_pb2.Fingerprint())).HasField("welcome")
    printed = capsys.readouterr()
    assert "prover.differs" in printed.out + printed.err
    assert "native_sha256 is" in printed.out + printed.err


async def test_the_fleet_shows_the_whole_build_of_a_prover(data_dir: Path, prover: Prover) -> None:
    build = build_message(commit="c0ffee", driver="575.1", kernels_sha256=b"k" * 32)
    async with running(data_dir, prover) as service:
        await greet(service, build)
        view = await service.prover_view("gpu-3")
    assert Fingerprint.of(view.hello.fingerprint) == Fingerprint.of(build)
