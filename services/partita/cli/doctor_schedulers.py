"""Checks of the addresses that a prover of this machine dials.

A prover needs the scheduler's port for provers. The health service of an address says which
services it has, and so whose port it is; nothing else is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from partita.cli.doctor_report import Check, Status, fail, ok, warn
from partita.service.grpcio import channel_options
from partita.v1 import dispatch_pb2, prover_pb2, proving_pb2

if TYPE_CHECKING:
    from partita.prover.config import ProverConfig

_PROBE_S: Final = 3.0
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_DISPATCH = dispatch_pb2.DESCRIPTOR.services_by_name["DispatchService"].full_name
_STRANGERS = {
    proving_pb2.DESCRIPTOR.services_by_name["ProvingService"].full_name: "the scheduler's address "
    "for clients, not for provers",
    prover_pb2.DESCRIPTOR.services_by_name["ProverService"].full_name: "a prover's own address",
}
"""A service that the wrong address may have, and whose address it is then."""
_NAME = "name the scheduler's prover_listen in [prover] schedulers; its port is 9831 by default"


def prover_schedulers(config: ProverConfig, wrote: str | None) -> tuple[Sequence[str], bool]:
    """Return the addresses that a prover would dial, and whether somebody should be there.

    Args:
        config: of the prover.
        wrote: what the data directory's scheduler wrote down as its address for provers.
    """
    if "schedulers" in config.model_fields_set:
        return config.schedulers, True
    return ((wrote,), True) if wrote else (config.schedulers, False)


def check_prover_schedulers(addresses: Sequence[str], *, expected: bool) -> list[Check]:
    """Look whether a scheduler takes provers at each address.

    Args:
        addresses: of [prover] schedulers, tried in turn.
        expected: whether one should be there: it was named, or wrote down that it runs.
    """
    answers = [_ask(address) for address in addresses]
    reached = any(isinstance(a, Check) and a.status is not Status.FAIL for a in answers)
    return [
        answer
        if isinstance(answer, Check)
        else _silent(address, answer, expected=expected, reached=reached)
        for address, answer in zip(addresses, answers, strict=True)
    ]


def _row(address: str) -> str:
    return f"scheduler for provers {address}"


def _ask(address: str) -> Check | str:
    """What an address says of itself, or why nobody answers there."""
    row = _row(address)
    with grpc.insecure_channel(address, channel_options()) as channel:
        try:
            status = _health(channel, _DISPATCH)
            for service, whose in _STRANGERS.items() if status is None else ():
                if _health(channel, service) is not None:
                    return fail(row, f"{address} is {whose}", _NAME)
        except grpc.RpcError as error:
            if error.code() in _SILENT:
                return str(error.details()).rpartition("last error: ")[2]
            return fail(row, f"{address} is no scheduler's: {error.code().name}", _NAME)
    if status is None:
        return fail(row, f"{address} is no scheduler's: it takes no provers", _NAME)
    if status != health_pb2.HealthCheckResponse.SERVING:
        cure = "the scheduler starts, stops or cannot save: its log and /readyz say why"
        return warn(row, f"answers at {address}, but takes no work", cure)
    return ok(row, f"takes provers at {address}")


def _health(channel: grpc.Channel, service: str) -> int | None:
    """The health of a service; None = the address does not have it.

    Raises:
        grpc.RpcError: nobody answers, or not the health service.
    """
    stub = health_pb2_grpc.HealthStub(channel)
    try:
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=_PROBE_S)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return None
        raise
    status: int = answer.status
    return status


def _silent(address: str, why: str, *, expected: bool, reached: bool) -> Check:
    text = f"nobody answers at {address}: {why}"
    if not expected:
        return warn(_row(address), text, "start one, or name its address in [prover] schedulers")
    if reached:
        cure = "start that scheduler, or take the address out; provers try the others too"
        return warn(_row(address), text, cure)
    cure = "start the scheduler, or correct [prover] schedulers; is no firewall between?"
    return fail(_row(address), text, cure)
