"""Servers own their address, answer probes and reflection, and errors keep their details."""

from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_status import rpc_status

from partita.service.grpcio import AddressInUseError, RpcError, Server, channel_options, reason_of
from partita.service.grpcio import abort as abort_call
from partita.v1 import blobs_pb2, blobs_pb2_grpc

SERVICE = "partita.v1.BlobService"
REFUSAL = RpcError(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "INGEST_FULL",
    "too many uploads at once",
    metadata={"uploads": "8"},
    fields={"blobs[0]": "refused"},
    retry_after_ns=1_500_000_000,
)


class _Refusing(blobs_pb2_grpc.BlobServiceServicer):
    async def FindMissing(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
        await abort_call(context, REFUSAL)


async def _serve(address: str) -> tuple[Server, str]:
    server = Server([SERVICE])
    blobs_pb2_grpc.add_BlobServiceServicer_to_server(_Refusing(), server.grpc)
    real = server.bind(address)
    await server.start()
    return server, real


async def test_an_error_reaches_the_client_with_reason_fields_and_delay() -> None:
    server, address = await _serve("127.0.0.1:0")
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        stub = blobs_pb2_grpc.BlobServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.FindMissing(blobs_pb2.FindMissingRequest())
    await server.stop(0)

    assert caught.value.code() is REFUSAL.code
    assert reason_of(caught.value) == "INGEST_FULL"
    info, bad, retry = rpc_status.from_call(caught.value).details
    violation = error_details_pb2.BadRequest()
    assert bad.Unpack(violation)
    assert violation.field_violations[0].field == "blobs[0]"
    delay = error_details_pb2.RetryInfo()
    assert retry.Unpack(delay)
    assert delay.retry_delay.ToNanoseconds() == 1_500_000_000
    assert info.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)


async def test_a_second_server_on_a_port_or_socket_is_refused(tmp_path: Path) -> None:
    for address in ("127.0.0.1:0", f"unix://{tmp_path}/p.sock"):
        server, real = await _serve(address)
        with pytest.raises(AddressInUseError, match=r"another"):
            Server([SERVICE]).bind(real)
        await server.stop(0)
        again, _ = await _serve(real)
        await again.stop(0)


async def test_health_is_not_serving_until_the_program_says_so() -> None:
    server, address = await _serve("127.0.0.1:0")
    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        before = (await stub.Check(request)).status
        await server.serving(True)
        after = (await stub.Check(request)).status
    await server.stop(0)
    status = health_pb2.HealthCheckResponse
    assert (before, after) == (status.NOT_SERVING, status.SERVING)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_and_describes_the_service_in_both_versions(version: str) -> None:
    server, address = await _serve("127.0.0.1:0")
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )(
            iter(
                [
                    reflection_pb2.ServerReflectionRequest(list_services=""),
                    reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
                    reflection_pb2.ServerReflectionRequest(
                        file_containing_symbol=f"{SERVICE}.Upload"
                    ),
                ]
            )
        )
        answers = [answer async for answer in call]
    await server.stop(0)
    assert SERVICE in [s.name for s in answers[0].list_services_response.service]
    assert answers[1].file_descriptor_response.file_descriptor_proto
    assert answers[2].file_descriptor_response.file_descriptor_proto, "a method name resolves too"
