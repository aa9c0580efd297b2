"""gRPC as every program of Partita uses it: options, servers, health, reflection, errors.

Why these options (measured; see ARCHITECTURE.md): without the two ping options a client that
pings every 10 s on a silent call is cut off; with SO_REUSEPORT two schedulers would share one
port without noticing. Unix sockets have the same hole, so a lock file lies beside each.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf import any_pb2, descriptor_pool, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server
from grpc_status import rpc_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.descriptor import FileDescriptor

DOMAIN = "partita"
READINESS = "readiness"
LIVENESS = "liveness"
"""Names that health probes may ask for beside "" and the services; "" means readiness."""

MAX_MESSAGE_BYTES = 4 << 20
CHUNK_BYTES = 1 << 20
MAX_TEXT_BYTES = 1024
"""Of a text in an error: errors travel in HTTP/2 trailers, and gRPC refuses long ones."""
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_KEEPALIVE = [("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 20_000)]


class AddressInUseError(Exception):
    """Another process listens on the address; the message names it and what to change."""


@dataclass(eq=False)
class RpcError(Exception):
    """An answer that is an error, independent of where it is raised.

    Attributes:
        code: the status code.
        reason: the stable word of ErrorInfo, UPPER_SNAKE.
        message: text for people: the field, the value and what to change.
        metadata: more of ErrorInfo, such as the missing digests.
        fields: field path to what is wrong with it, for BadRequest.
        retry_after_ns: for RetryInfo; None = another try does not help.
    """

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    retry_after_ns: int | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    def status(self) -> status_pb2.Status:
        """Return the error as google.rpc.Status, long texts cut off."""
        details: list[Any] = [
            error_details_pb2.ErrorInfo(
                reason=self.reason, domain=DOMAIN, metadata=dict(self.metadata)
            )
        ]
        if self.fields:
            details.append(
                error_details_pb2.BadRequest(
                    field_violations=[
                        error_details_pb2.BadRequest.FieldViolation(
                            field=_short(name), description=_short(text)
                        )
                        for name, text in self.fields.items()
                    ]
                )
            )
        if self.retry_after_ns is not None:
            seconds, nanos = divmod(self.retry_after_ns, 10**9)
            details.append(
                error_details_pb2.RetryInfo(
                    retry_delay=duration_pb2.Duration(seconds=seconds, nanos=nanos)
                )
            )
        packed = []
        for detail in details:
            packed.append(any_pb2.Any())
            packed[-1].Pack(detail)
        return status_pb2.Status(
            code=code_pb2.Code.Value(self.code.name), message=_short(self.message), details=packed
        )


def _short(text: str) -> str:
    return text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: RpcError) -> NoReturn:
    """End the call with `error` and its details."""
    await context.abort_with_status(rpc_status.to_status(error.status()))
    raise AssertionError("abort_with_status returned")


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Return the reason in a call's ErrorInfo, or "" if it has none."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def channel_options(max_message_bytes: int = MAX_MESSAGE_BYTES) -> list[tuple[str, int]]:
    """Return the options of a channel to another program."""
    return [
        *_KEEPALIVE,
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
    ]


class _ResolvingPool:
    """The descriptor pool, which also finds the file of a method: grpcurl asks for those."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, name: str) -> FileDescriptor:  # noqa: N802
        try:
            return self._pool.FindFileContainingSymbol(name)
        except KeyError:
            service = self._pool.FindServiceByName(name.rpartition(".")[0])
            if name.rpartition(".")[2] not in service.methods_by_name:
                raise
            return service.file


class Server:
    """A grpc.aio server with health and reflection that owns its addresses alone.

    Use: make it, register servicers on `grpc`, `await start(...)`, later `await stop(...)`.

    Args:
        services: full names of the services it will serve, for reflection and health.
        max_message_bytes: the largest message either way.
    """

    def __init__(
        self, services: Sequence[str], *, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> None:
        self.grpc = grpc.aio.server(
            options=[
                *channel_options(max_message_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ]
        )
        self._services = list(services)
        self._health = HealthServicer()
        self._locks: list[int] = []
        self.addresses: list[str] = []
        add_HealthServicer_to_server(self._health, self.grpc)
        names = [
            *services,
            health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
            reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name,
        ]
        self._add_reflection(names)

    def _add_reflection(self, names: list[str]) -> None:
        servicer = ReflectionServicer(names, pool=_ResolvingPool())
        add_ServerReflectionServicer_to_server(servicer, self.grpc)
        # v1 has the same messages under another service name; grpcio-reflection serves v1alpha.
        handler = grpc.stream_stream_rpc_method_handler(
            servicer.ServerReflectionInfo,
            request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
            response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        self.grpc.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "grpc.reflection.v1.ServerReflection", {"ServerReflectionInfo": handler}
                ),
            )
        )

    def bind(self, address: str) -> str:
        """Bind `host:port` (port 0 = any free one) or `unix:///path`; return the real address.

        Raises:
            AddressInUseError: another process has it.
        """
        if address.startswith("unix:"):
            self._lock_socket(Path(address.removeprefix("unix:").removeprefix("//")))
        try:
            port = self.grpc.add_insecure_port(address)
        except RuntimeError as error:
            raise AddressInUseError(
                f"{address} cannot be bound ({error}): is another server running? "
                "Stop it or choose another address"
            ) from error
        real = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
        self.addresses.append(real)
        return real

    def _lock_socket(self, path: Path) -> None:
        try:
            descriptor = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise AddressInUseError(
                f"unix://{path} cannot be bound: {path}.lock: {error.strerror}; choose a path in "
                "a directory that this user can write"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise AddressInUseError(
                f"unix://{path} is served by another process; stop it or choose another path"
            ) from error
        self._locks.append(descriptor)

    async def start(self) -> None:
        """Listen, alive, and say NOT_SERVING until `serving(True)`."""
        await self.serving(False)
        await self.alive(True)
        await self.grpc.start()

    async def serving(self, ready: bool) -> None:
        """Tell health probes whether the server takes work."""
        for name in ("", READINESS, *self._services):
            await self._health.set(name, _SERVING if ready else _NOT_SERVING)

    async def alive(self, alive: bool) -> None:
        """Tell health probes whether the process should be left alone."""
        await self._health.set(LIVENESS, _SERVING if alive else _NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, let running ones end within the grace, free the addresses."""
        await self.grpc.stop(grace_s)
        for descriptor in self._locks:
            with suppress(OSError):
                os.close(descriptor)
        self._locks.clear()
