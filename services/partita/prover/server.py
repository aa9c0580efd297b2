"""The prover's own port: GetInfo, SelfTest, health and reflection, for probes and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from partita.service import grpcio
from partita.v1 import prover_pb2, prover_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from partita.groth16.selftest import Step
    from partita.v1 import dispatch_pb2

SERVICE = prover_pb2.DESCRIPTOR.services_by_name["ProverService"].full_name


class ProverServicer(prover_pb2_grpc.ProverServiceServicer):
    """Shows what the prover told, or would tell, its scheduler.

    Args:
        hello: makes the newest Hello.
        actual: makes the newest Actual.
        scheduler: the address of the scheduler, "" if none is connected.
        self_test: tests the circuit of a name, step by step.
    """

    def __init__(
        self,
        hello: Callable[[], dispatch_pb2.Hello],
        actual: Callable[[], dispatch_pb2.Actual],
        scheduler: Callable[[], str],
        self_test: Callable[[str], AsyncIterator[Step]],
    ) -> None:
        self._hello = hello
        self._actual = actual
        self._scheduler = scheduler
        self._self_test = self_test

    async def GetInfo(  # noqa: N802
        self,
        request: prover_pb2.GetInfoRequest,  # noqa: ARG002
        context: grpc.aio.ServicerContext[Any, Any],  # noqa: ARG002
    ) -> prover_pb2.GetInfoResponse:
        """Return the prover's state."""
        return prover_pb2.GetInfoResponse(
            hello=self._hello(), actual=self._actual(), scheduler_address=self._scheduler()
        )

    async def SelfTest(  # noqa: N802
        self,
        request: prover_pb2.SelfTestRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[prover_pb2.SelfTestResponse]:
        """Test the circuit and stream each step."""
        if self._actual().leases:
            busy = "a lease is held: try again when the prover is idle"
            await grpcio.abort(context, grpcio.RpcError(grpc.StatusCode.UNAVAILABLE, "BUSY", busy))
        try:
            async for step in self._self_test(request.circuit_id):
                yield prover_pb2.SelfTestResponse(step=step.name, ok=step.ok, detail=step.detail)
        except LookupError as error:
            unknown = grpcio.RpcError(
                grpc.StatusCode.NOT_FOUND, "UNKNOWN_CIRCUIT", str(error.args[0])
            )
            await grpcio.abort(context, unknown)


def make_server(servicer: ProverServicer) -> grpcio.Server:
    """Return the server, not yet bound."""
    server = grpcio.Server([SERVICE])
    prover_pb2_grpc.add_ProverServiceServicer_to_server(servicer, server.grpc)
    return server
