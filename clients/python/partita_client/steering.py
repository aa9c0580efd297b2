"""Requests that steer a fleet, from words: what a prover may do, which keys stay in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from partita.v1 import fleet_pb2
from partita_client.errors import InvalidRequestError

_MODES: Mapping[str, fleet_pb2.Mode] = {
    "active": fleet_pb2.MODE_ACTIVE,
    "cordoned": fleet_pb2.MODE_CORDONED,
    "drained": fleet_pb2.MODE_DRAINED,
}
_TRUSTS: Mapping[str, fleet_pb2.Trust] = {
    "trusted": fleet_pb2.TRUST_TRUSTED,
    "quarantined": fleet_pb2.TRUST_QUARANTINED,
    "probation": fleet_pb2.TRUST_PROBATION,
}
_RESIDENCIES: Mapping[str, fleet_pb2.Residency] = {
    "auto": fleet_pb2.RESIDENCY_AUTO,
    "pinned": fleet_pb2.RESIDENCY_PINNED,
    "evicted": fleet_pb2.RESIDENCY_EVICTED,
}

T = TypeVar("T")


def prover_mode_request(
    prover_id: str, mode: str | None, trust: str | None, reason: str
) -> fleet_pb2.SetProverModeRequest:
    """Return the request that sets what a prover may do; None leaves it as it is.

    Raises:
        InvalidRequestError: the mode or the trust is not one.
    """
    request = fleet_pb2.SetProverModeRequest(prover_id=prover_id, reason=reason)
    if mode is not None:
        request.mode = _named("mode", mode, _MODES)
    if trust is not None:
        request.trust = _named("trust", trust, _TRUSTS)
    return request


def residency_request(
    circuit_id: str, residency: str, prover_id: str
) -> fleet_pb2.SetResidencyRequest:
    """Return the request that pins or evicts a key.

    Raises:
        InvalidRequestError: the residency is not one.
    """
    return fleet_pb2.SetResidencyRequest(
        circuit_id=circuit_id,
        prover_id=prover_id,
        residency=_named("residency", residency, _RESIDENCIES),
    )


def _named(field: str, name: str, values: Mapping[str, T]) -> T:
    if name not in values:
        raise InvalidRequestError(f"{field}: {name!r} is not one of {', '.join(values)}")
    return values[name]
