"""What probes and Prometheus ask over HTTP: /metrics, /healthz, /readyz.

    /healthz  200 while the process should be left alone, 503 once it should be started again
    /readyz   200 while it takes work, otherwise 503; the body says why not
    /metrics  Prometheus' text format

Both answers are {"ok": bool, "why_not": [text, ...]}. gRPC's health says the same under the names
"liveness", "readiness", "" and each service's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from partita.service.grpcio import AddressInUseError
from partita.service.metering import CONTENT_TYPE

_BACKLOG = 16
_STOP_S = 1

WhyNot = Callable[[], Sequence[str]]
"""Returns what is wrong; nothing = well."""


class _Server(uvicorn.Server):
    """A server that leaves the process's signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class ProbeServer:
    """The HTTP side of a program. Use: `bind`, `start`, `stop`.

    Args:
        metrics: makes the exposition.
        alive: why the process should be started again.
        ready: why it takes no work.
    """

    def __init__(self, metrics: Callable[[], bytes], alive: WhyNot, ready: WhyNot) -> None:
        async def answer_metrics(_: Request) -> Response:
            return Response(metrics(), headers={"content-type": CONTENT_TYPE})

        async def answer_alive(_: Request) -> Response:
            return _probe(alive())

        async def answer_ready(_: Request) -> Response:
            return _probe(ready())

        application = Starlette(
            routes=[
                Route("/metrics", answer_metrics),
                Route("/healthz", answer_alive),
                Route("/readyz", answer_ready),
            ]
        )
        self._server = _Server(
            uvicorn.Config(
                application,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_S,
            )
        )
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    def bind(self, address: str) -> str:
        """Listen on `host:port` (port 0 = any free one); return the real address.

        Raises:
            AddressInUseError: it cannot be had.
        """
        host, _, port = address.rpartition(":")
        bare = host.strip("[]")
        family = socket.AF_INET6 if ":" in bare else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((bare, int(port)))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise AddressInUseError(
                f"metrics_listen = {address} cannot be bound ({error.strerror}): is another "
                "server running? Stop it or choose another address"
            ) from error
        self._socket = listener
        return f"{host}:{listener.getsockname()[1]}"

    def start(self) -> None:
        """Answer; on the running event loop."""
        assert self._socket is not None
        serve = self._server.serve(sockets=[self._socket])
        self._task = asyncio.create_task(serve, name="probes")

    async def stop(self) -> None:
        """Stop answering and free the address; idempotent."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
            self._task = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _probe(why_not: Sequence[str]) -> Response:
    content = {"ok": not why_not, "why_not": list(why_not)}
    return JSONResponse(content, status_code=503 if why_not else 200)


async def pulse(interval_s: float, beat: Callable[[float], None]) -> None:
    """Call `beat` about every interval with the seconds by which the event loop was late."""
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + interval_s
        await asyncio.sleep(interval_s)
        beat(max(0.0, clock() - due))
