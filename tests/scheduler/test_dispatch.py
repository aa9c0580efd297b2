"""The rules of the provers' stream, kept against peers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.service.fingerprint import STALE_FEATURE
from partita.service.grpcio import channel_options
from partita.v1 import (
    blobs_pb2,
    blobs_pb2_grpc,
    dispatch_pb2,
    dispatch_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    proving_pb2,
    types_pb2,
)
from tests.scheduler.peer import Connect, Peer, Prover, connected, download, product_wtns
from tests.scheduler.running import Running, blob_ref, refused, request_of, running, upload

Code = grpc.StatusCode
Request = dispatch_pb2.WorkRequest
COMPLETED = proving_pb2.JOB_STATE_COMPLETED


@asynccontextmanager
async def stream(service: Running) -> AsyncIterator[Any]:
    """Open a bare Work stream."""
    address = service.scheduler.addresses.prover
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        call = dispatch_pb2_grpc.DispatchServiceStub(channel).Work()
        try:
            yield call
        finally:
            call.cancel()


async def works(service: Running, connect: Connect) -> None:
    """Show that the service still proves."""
    await connect("honest")
    answer = await service.submit([(2, 3)])
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED


async def test_the_greeting_comes_first_and_no_desired_before_the_first_actual(
    service: Running,
) -> None:
    peer = service.peer()
    await service.submit([(2, 3)])
    service.scheduler._running.stale = ("one.py",)
    async with stream(service) as call:
        await call.write(Request(hello=peer.hello()))
        first = await call.read()
        assert first.welcome.contract == 1
        assert first.welcome.epoch == service.scheduler.epoch
        assert first.welcome.beat.seconds == 5
        assert list(first.welcome.features) == [STALE_FEATURE]
        assert len(first.welcome.catalogue_revision) == 32
        await service.until_connected("gpu-0")
        assert not (await service.prover_view("gpu-0")).desired.leases
        await call.write(Request(actual=peer.actual()))
        second = await call.read()
        assert len(second.desired.leases) == 1
        assert second.desired.revision == 1


def _hello(service: Running, **changes: Any) -> Request:
    hello = service.peer().hello()
    for name, value in changes.items():
        field = getattr(hello, name)
        if isinstance(value, list):
            del field[:]
            field.extend(value)
        elif hasattr(value, "DESCRIPTOR"):
            field.CopyFrom(value)
        else:
            setattr(hello, name, value)
    return Request(hello=hello)


BAD_HELLOS: dict[str, dict[str, Any]] = {
    "hello.prover_id": {"prover_id": ""},
    "hello.instance_id": {"instance_id": "x" * 200},
    "hello.max_leases": {"max_leases": 257},
    "hello.total.host": {"total": types_pb2.Bytes(host=1 << 63)},
    "hello.offers[0].manifest_sha256": {
        "offers": [dispatch_pb2.CircuitOffer(circuit_id="product", manifest_sha256=b"x" * 31)]
    },
    "hello.offers[1].manifest_sha256": {
        "offers": [dispatch_pb2.CircuitOffer(circuit_id="product", manifest_sha256=b"x" * 32)] * 2
    },
    "hello.offers": {
        "offers": [dispatch_pb2.CircuitOffer(circuit_id="a", manifest_sha256=bytes(32))] * 1025
    },
    "hello.highest_epoch": {"highest_epoch": (1 << 64) - 1},
    "hello.fingerprint.native_sha256": {"fingerprint": types_pb2.Fingerprint(native_sha256=b"x")},
}


@pytest.mark.parametrize("field", BAD_HELLOS)
async def test_a_hello_out_of_bounds_is_refused_by_its_field(
    service: Running, connect: Connect, field: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        async with stream(service) as call:
            await call.write(_hello(service, **BAD_HELLOS[field]))
            await call.read()
    assert refusal.fields == (field,)
    await works(service, connect)


def _lease(**fields: Any) -> dispatch_pb2.HeldLease:
    return dispatch_pb2.HeldLease(**{"lease_id": "1.1", "job_id": "j", **fields})


BAD_ACTUALS: dict[str, dispatch_pb2.Actual] = {
    "actual.leases": dispatch_pb2.Actual(leases=[_lease(lease_id=str(i)) for i in range(257)]),
    "actual.leases[0].lease_id": dispatch_pb2.Actual(leases=[_lease(lease_id="")]),
    "actual.leases[0].proved.proof": dispatch_pb2.Actual(
        leases=[_lease(proved=dispatch_pb2.Proved(proof=bytes(5000)))]
    ),
    "actual.leases[0].held.device": dispatch_pb2.Actual(
        leases=[_lease(held=types_pb2.Bytes(device=1 << 62))]
    ),
    "actual.keys[0].manifest_sha256": dispatch_pb2.Actual(keys=[dispatch_pb2.HeldKey()]),
    "actual.reason": dispatch_pb2.Actual(reason="x" * 5000),
    "actual.applied": dispatch_pb2.Actual(applied=(1 << 64) - 1),
}


@pytest.mark.parametrize("field", BAD_ACTUALS)
async def test_an_actual_out_of_bounds_ends_the_stream_by_its_field(
    service: Running, connect: Connect, field: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        async with stream(service) as call:
            await call.write(_hello(service))
            await call.read()
            await call.write(Request(actual=BAD_ACTUALS[field]))
            await call.read()
    assert refusal.fields == (field,)
    await works(service, connect)


async def test_a_lease_that_is_listed_twice_ends_the_stream(service: Running) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT"):
        async with stream(service) as call:
            await call.write(_hello(service))
            await call.read()
            await call.write(Request(actual=dispatch_pb2.Actual(leases=[_lease(), _lease()])))
            await call.read()


@pytest.mark.parametrize("first", ["actual", "nothing"])
async def test_a_stream_that_does_not_begin_with_hello_is_refused(
    service: Running, connect: Connect, first: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT"):
        async with stream(service) as call:
            message = Request(actual=dispatch_pb2.Actual()) if first == "actual" else Request()
            await call.write(message)
            await call.read()
    await works(service, connect)


async def test_a_stream_that_says_nothing_is_ended(data_dir: Path, prover: Prover) -> None:
    async with running(data_dir, prover, stall="50ms") as service:
        with refused(Code.INVALID_ARGUMENT, "BAD_INPUT"):
            async with stream(service) as call:
                await call.read()


@pytest.mark.parametrize("contract", [(2, 3), (0, 0)])
async def test_a_prover_of_another_contract_is_told_which_one_to_install(
    service: Running, connect: Connect, contract: tuple[int, int]
) -> None:
    with refused(Code.FAILED_PRECONDITION, "CONTRACT_MISMATCH") as refusal:
        await service.peer(contract=contract).run()
    assert refusal.metadata == {"contract": "1"}
    assert "install" in refusal.message
    await works(service, connect)


async def test_a_prover_that_knows_a_contract_range_agrees_on_the_common_one(
    service: Running, connect: Connect
) -> None:
    peer: Peer = await connect(contract=(1, 7))
    await service.until_connected("gpu-0")
    answer = await service.submit([(2, 3)])
    await service.end_of(answer.job.job_id)
    assert peer.welcome is not None
    assert peer.welcome.contract == 1


async def test_two_live_processes_under_one_id_the_second_is_refused(
    service: Running, connect: Connect
) -> None:
    first: Peer = await connect("gpu-0", instance_id="one")
    await service.end_of((await service.submit([(2, 3)])).job.job_id)
    with refused(Code.ALREADY_EXISTS, "PROVER_ID_IN_USE") as refusal:
        await service.peer("gpu-0", instance_id="two").run()
    assert refusal.retry_ns is not None
    answer = await service.submit([(2, 4)])
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    assert len(first.proved) == 2


async def test_the_same_process_on_a_second_stream_wins(service: Running, connect: Connect) -> None:
    older = service.peer("gpu-0", instance_id="same")
    task = asyncio.create_task(older.run())
    await service.end_of((await service.submit([(2, 3)])).job.job_id)
    newer: Peer = await connect("gpu-0", instance_id="same")
    with refused(Code.ABORTED, "SUPERSEDED"):
        await task
    answer = await service.submit([(2, 4)])
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED
    assert newer.proved == [(answer.job.job_id, 0)]


async def test_a_prover_that_saw_a_newer_scheduler_is_told_to_go_there(service: Running) -> None:
    with refused(Code.ABORTED, "STALE_EPOCH"):
        await service.peer(highest_epoch=service.scheduler.epoch + 1).run()


async def test_a_later_hello_of_another_prover_ends_the_stream(service: Running) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT"):
        async with stream(service) as call:
            await call.write(_hello(service))
            await call.read()
            await call.write(_hello(service, prover_id="other"))
            await call.read()


async def test_a_prover_that_does_not_take_in_its_leases_is_stuck(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, stuck_applied="100ms") as service:
        await service.submit([(2, 3)])
        with refused(Code.ABORTED, "STUCK"):
            async with stream(service) as call:
                await call.write(_hello(service))
                await call.write(
                    Request(actual=dispatch_pb2.Actual(condition=dispatch_pb2.CONDITION_READY))
                )
                while await call.read() is not grpc.aio.EOF:
                    pass


async def test_a_later_hello_changes_the_offers(service: Running) -> None:
    await service.submit([(2, 3)])
    peer = service.peer()
    async with stream(service) as call:
        await call.write(_hello(service, offers=[]))
        await call.read()
        await call.write(Request(actual=peer.actual()))
        await call.write(Request(hello=peer.hello()))
        while not (await call.read()).desired.leases:
            pass


async def test_a_lost_stream_is_taken_up_again_without_proving_twice(
    service: Running, connect: Connect
) -> None:
    peer = service.peer("gpu-0")
    peer.work.clear()
    answer = await service.submit([(2, 3), (2, 4)])
    async with connected(peer):
        await peer.started.wait()
    await service.until_connected("gpu-0", connected=False)
    peer.work.set()
    async with connected(peer):
        job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert [part.attempt for part in job.partitions] == [1, 1]
    assert sorted(peer.proved) == [(job.job_id, 0), (job.job_id, 1)]


async def test_a_dead_prover_loses_its_partitions_to_another_after_the_grace(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, grace="100ms") as service:
        dead = service.peer("dead")
        dead.work.clear()
        async with connected(dead):
            answer = await service.submit([(2, 3), (2, 4)])
            await dead.started.wait()
        async with connected(service.peer("alive")):
            job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert {part.prover_id for part in job.partitions} == {"alive"}


async def test_inputs_beyond_the_inline_budget_of_a_desired_are_downloaded(
    service: Running, connect: Connect
) -> None:
    filler = b" " * 9_000
    contents = [b'{"left":"2","right":"%d"}' % index + filler for index in range(300)]
    parts = [proving_pb2.PartitionInput(inline=content) for content in contents]
    request = proving_pb2.SubmitJobRequest(
        circuit_id="product", input_format="circom.json", partitions=parts
    )
    answer = await service.proving.SubmitJob(request)
    peer: Peer = await connect(max_leases=256, total_bytes=2 << 30)
    peer.work.clear()
    await peer.started.wait()
    inline = [bool(lease.inline) for lease in peer.desired.leases]
    assert len(inline) == 256
    assert sum(len(lease.inline) for lease in peer.desired.leases) <= 2 << 20
    assert any(inline)
    assert not all(inline)
    peer.work.set()
    assert (await service.end_of(answer.job.job_id)).state == COMPLETED


async def test_provers_may_read_inputs_of_jobs_and_circuit_files_and_nothing_else(
    service: Running,
) -> None:
    needed, other = product_wtns(6, 6), product_wtns(7, 7)
    await upload(service.blobs, needed)
    await upload(service.blobs, other)
    part = proving_pb2.PartitionInput(blob=blob_ref(needed))
    await service.proving.SubmitJob(request_of([], partitions=[part]))
    await service.submit([(8, 8)])
    address = service.scheduler.addresses.prover
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        stub = blobs_pb2_grpc.BlobServiceStub(channel)
        fleet = fleet_pb2_grpc.FleetServiceStub(channel)
        assert await download(stub, blob_ref(needed)) == needed
        assert await download(stub, blob_ref(needed), offset=100) == needed[100:]
        assert await download(stub, blob_ref(needed), offset=len(needed)) == b""
        assert await download(stub, blob_ref(product_wtns(8, 8))) == product_wtns(8, 8)
        circuits = await fleet.ListCircuits(fleet_pb2.ListCircuitsRequest())
        (circuit,) = circuits.circuits
        assert circuit.circuit_id == "product"
        for file in circuit.files:
            assert blob_ref(await download(stub, file.blob)) == file.blob
        with refused(Code.FAILED_PRECONDITION, "BLOB_MISSING"):
            await download(stub, blob_ref(other))
        with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
            await download(stub, blob_ref(needed), offset=len(needed) + 1)
        assert refusal.fields == ("offset",)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await fleet.ListProvers(fleet_pb2.ListProversRequest())
        assert caught.value.code() is Code.UNIMPLEMENTED, "provers see only the catalogue"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.FindMissing(blobs_pb2.FindMissingRequest())
        assert caught.value.code() is Code.UNIMPLEMENTED
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await download(service.blobs, blob_ref(needed))
    assert caught.value.code() is Code.UNIMPLEMENTED, "clients cannot read blobs back"
