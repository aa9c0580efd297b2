"""How a channel to the scheduler is set up; the same for the sync and the asyncio client."""

from __future__ import annotations

from typing import Any, Final

from partita.v1 import blobs_pb2_grpc, fleet_pb2_grpc, proving_pb2_grpc

DEFAULT_ADDRESS: Final = "127.0.0.1:9830"
"""Where a scheduler of this machine listens unless it was told otherwise."""

OPTIONS: Final[list[tuple[str, Any]]] = [
    # A silent long poll must survive NAT and load balancers, and a dead peer must be noticed.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # The client has its own back-off; the channel must be ready to connect when a try comes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    # Retries are the client's, by request_id; gRPC's own stop silently above a buffer size.
    ("grpc.enable_retries", 0),
    # Schedulers are internal services: a proxy meant for the web is not on the way to them.
    ("grpc.enable_http_proxy", 0),
]

STUBS: Final[dict[str, Any]] = {
    "proving": proving_pb2_grpc.ProvingServiceStub,
    "blobs": blobs_pb2_grpc.BlobServiceStub,
    "fleet": fleet_pb2_grpc.FleetServiceStub,
}
