"""The prover's own port: GetInfo, health and reflection, for probes and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.service import grpcio
from partita.v1 import prover_pb2, prover_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio

    from partita.v1 import dispatch_pb2

SERVICE = prover_pb2.DESCRIPTOR.services_by_name["ProverService"].full_name


class ProverServicer(prover_pb2_grpc.ProverServiceServicer):
    """Shows what the prover told, or would tell, its scheduler.

    Args:
        hello: makes the newest Hello.
        actual: makes the newest Actual.
        scheduler: the address of the scheduler, "" if none is connected.
    """

    def __init__(
        self,
        hello: Callable[[], dispatch_pb2.Hello],
        actual: Callable[[], dispatch_pb2.Actual],
        scheduler: Callable[[], str],
    ) -> None:
        self._hello = hello
        self._actual = actual
        self._scheduler = scheduler

    async def GetInfo(  # noqa: N802
        self,
        request: prover_pb2.GetInfoRequest,  # noqa: ARG002
        context: grpc.aio.ServicerContext[Any, Any],  # noqa: ARG002
    ) -> prover_pb2.GetInfoResponse:
        """Return the prover's state."""
        return prover_pb2.GetInfoResponse(
            hello=self._hello(), actual=self._actual(), scheduler_address=self._scheduler()
        )


def make_server(servicer: ProverServicer) -> grpcio.Server:
    """Return the server, not yet bound."""
    server = grpcio.Server([SERVICE])
    prover_pb2_grpc.add_ProverServiceServicer_to_server(servicer, server.grpc)
    return server
