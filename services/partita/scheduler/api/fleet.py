"""FleetService: the fleet and the catalogue, for operators; for provers only the catalogue.

Views never hold inputs: a Desired is shown without its inline bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc

from partita.circuits.catalogue import Catalogue
from partita.circuits.container import map_file
from partita.circuits.development import contradiction
from partita.circuits.manifest import KEY_ROLES, Manifest
from partita.groth16.errors import FormatError, Groth16Error
from partita.groth16.keys import KeyFamily
from partita.groth16.verifying_key import VerifyingKey
from partita.scheduler.api.fleet_views import prover_message, snapshot_message
from partita.scheduler.api.status import (
    answers_errors,
    bad,
    missing_blobs,
    refusal,
    unknown_circuit,
)
from partita.scheduler.api.translate import bytes_message
from partita.scheduler.catalogue import CatalogueWatcher, KnownCircuit
from partita.scheduler.core.events import ModeSet, ResidencySet, TrustSet
from partita.scheduler.core.model import Mode, Residency, Trust
from partita.scheduler.core.views import FleetView
from partita.scheduler.engine import Engine
from partita.service.grpcio import abort
from partita.v1 import fleet_pb2, fleet_pb2_grpc, types_pb2

WATCH_INTERVAL_S = 0.5
MAX_MANIFEST_BYTES = 1 << 20
MAX_REASON_CHARS = 1024
_FAMILIES = {
    KeyFamily.SNARKJS: fleet_pb2.KEY_FAMILY_SNARKJS,
    KeyFamily.BELLPERSON: fleet_pb2.KEY_FAMILY_BELLPERSON,
}

Context = grpc.aio.ServicerContext[Any, Any]


class ProverFleetService(fleet_pb2_grpc.FleetServiceServicer):
    """What provers may ask: which circuits there are.

    Args:
        engine: owns the core.
        catalogue: the circuits.
    """

    def __init__(self, engine: Engine, catalogue: CatalogueWatcher) -> None:
        self._engine = engine
        self._catalogue = catalogue

    @answers_errors
    async def ListCircuits(  # noqa: N802
        self, request: fleet_pb2.ListCircuitsRequest, context: Context
    ) -> fleet_pb2.ListCircuitsResponse:
        """See the service's definition."""
        del request, context
        known = self._catalogue.known
        fleet = self._engine.core.fleet()
        return fleet_pb2.ListCircuitsResponse(
            circuits=[
                _circuit_message(circuit, fleet) for _, circuit in sorted(known.circuits.items())
            ],
            catalogue_revision=known.revision,
        )


class FleetService(ProverFleetService):
    """What operators may do."""

    def __init__(self, engine: Engine, catalogue: CatalogueWatcher) -> None:
        super().__init__(engine, catalogue)
        self.draining = asyncio.Event()
        """Set when the scheduler stops: no watch goes on."""

    @answers_errors
    async def ListProvers(  # noqa: N802
        self, request: fleet_pb2.ListProversRequest, context: Context
    ) -> fleet_pb2.ListProversResponse:
        """See the service's definition."""
        del request, context
        self._engine.run_now()
        fleet = self._engine.core.fleet()
        return fleet_pb2.ListProversResponse(
            provers=[prover_message(prover) for prover in fleet.provers]
        )

    async def WatchFleet(  # noqa: N802
        self, request: fleet_pb2.WatchFleetRequest, context: Context
    ) -> AsyncIterator[fleet_pb2.WatchFleetResponse]:
        """See the service's definition."""
        del request
        signal = self._engine.fleet_changed
        stopping = asyncio.create_task(self.draining.wait())
        try:
            while not stopping.done():
                seen = signal.count
                yield fleet_pb2.WatchFleetResponse(
                    fleet=snapshot_message(self._engine.core.fleet())
                )
                await asyncio.wait({stopping}, timeout=WATCH_INTERVAL_S)
                change = asyncio.create_task(signal.wait(seen))
                try:
                    await asyncio.wait({stopping, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
            await abort(context, refusal("DRAINING"))
        finally:
            stopping.cancel()

    @answers_errors
    async def SetProverMode(  # noqa: N802
        self, request: fleet_pb2.SetProverModeRequest, context: Context
    ) -> fleet_pb2.SetProverModeResponse:
        """See the service's definition."""
        del context
        if len(request.reason) > MAX_REASON_CHARS:
            raise bad("reason", f"{len(request.reason)} characters: at most {MAX_REASON_CHARS}")
        self._prover(request.prover_id)
        for mode in Mode:
            if int(mode) == int(request.mode):
                self._engine.post(ModeSet(request.prover_id, mode, request.reason))
        for trust in Trust:
            if int(trust) == int(request.trust):
                self._engine.post(TrustSet(request.prover_id, trust, request.reason))
        return fleet_pb2.SetProverModeResponse(prover=self._prover(request.prover_id))

    def _prover(self, prover_id: str) -> fleet_pb2.ProverView:
        self._engine.run_now()
        for prover in self._engine.core.fleet().provers:
            if prover.prover_id == prover_id:
                return prover_message(prover)
        raise bad("prover_id", f"no prover is called {prover_id[:128]!r}", "PROVER_UNKNOWN")

    @answers_errors
    async def SetResidency(  # noqa: N802
        self, request: fleet_pb2.SetResidencyRequest, context: Context
    ) -> fleet_pb2.SetResidencyResponse:
        """See the service's definition."""
        del context
        wish = next((r for r in Residency if int(r) == int(request.residency)), None)
        if wish is None:
            raise bad("residency", f"{int(request.residency)}: must be AUTO, PINNED or EVICTED")
        await self._catalogue.refresh()
        manifest_sha256 = self._known(request.circuit_id).entry.manifest_sha256
        if request.prover_id:
            self._prover(request.prover_id)
        self._engine.run_now()
        changed = self._engine.core.residency_change(manifest_sha256, request.prover_id, wish)
        self._engine.post(ResidencySet(manifest_sha256, request.prover_id, wish))
        self._engine.run_now()
        return fleet_pb2.SetResidencyResponse(changed=bytes_message(changed))

    @answers_errors
    async def AddCircuit(  # noqa: N802
        self, request: fleet_pb2.AddCircuitRequest, context: Context
    ) -> fleet_pb2.AddCircuitResponse:
        """See the service's definition."""
        del context
        text = request.manifest_json.encode()
        if len(text) > MAX_MANIFEST_BYTES:
            raise bad("manifest_json", f"{len(text)} bytes: at most {MAX_MANIFEST_BYTES}")
        try:
            manifest = Manifest.from_json("manifest_json", text)
        except FormatError as error:
            raise bad("manifest_json", str(error)) from error
        digests = {role: bytes.fromhex(value) for role, value in manifest.files.items()}
        missing = tuple(d for d in digests.values() if self._engine.blobs.renew(d) is None)
        if missing:
            raise missing_blobs(missing)
        try:
            await self._catalogue.run(partial(self._publish, request.circuit_id, manifest))
        except OSError as error:
            raise refusal(
                "INGEST_FULL", f"the circuit cannot be stored: {error.strerror}"
            ) from error
        return fleet_pb2.AddCircuitResponse(
            circuit=_circuit_message(self._known(request.circuit_id), self._engine.core.fleet())
        )

    def _publish(self, circuit_id: str, manifest: Manifest, catalogue: Catalogue) -> None:
        """In the catalogue's thread: copy the blobs into a new entry and make it visible."""
        with catalogue.stage(circuit_id) as staging:
            for role, digest in manifest.files.items():
                path = staging.copy(role, self._engine.blobs.path(bytes.fromhex(digest)))
                if role == "vk":
                    _check_vk(manifest, path.read_bytes())
                elif role == KEY_ROLES[manifest.family][0]:
                    _check_mark(manifest, role, map_file(path))
            staging.publish(manifest)

    def _known(self, circuit_id: str) -> KnownCircuit:
        known = self._catalogue.known
        circuit = known.circuits.get(circuit_id)
        if circuit is None:
            raise unknown_circuit(circuit_id, known.broken.get(circuit_id))
        return circuit

    @answers_errors
    async def RemoveCircuit(  # noqa: N802
        self, request: fleet_pb2.RemoveCircuitRequest, context: Context
    ) -> fleet_pb2.RemoveCircuitResponse:
        """See the service's definition."""
        del context
        circuit_id = request.circuit_id
        await self._catalogue.refresh()
        if circuit_id not in self._catalogue.known.broken:
            self._known(circuit_id)
        self._engine.run_now()
        load = {c.circuit_id: c.open_jobs for c in self._engine.core.fleet().circuits}
        if load.get(circuit_id):
            raise bad(
                "circuit_id",
                f"{load[circuit_id]} open jobs name {circuit_id}: cancel them or let them end",
                "CIRCUIT_IN_USE",
            )
        await self._catalogue.run(lambda catalogue: catalogue.remove(circuit_id))
        return fleet_pb2.RemoveCircuitResponse()


def _check_vk(manifest: Manifest, data: bytes) -> None:
    try:
        vk = VerifyingKey.from_bytes(manifest.curve, data)
    except Groth16Error as error:
        raise bad("manifest_json.files.vk", str(error)) from error
    if vk.n_public != manifest.n_public:
        raise bad(
            "manifest_json.counts.n_public",
            f"{manifest.n_public}, but the verifying key has {vk.n_public} public inputs",
        )


def _check_mark(manifest: Manifest, role: str, data: memoryview) -> None:
    """Let no key of a development set-up in under a manifest that does not say so."""
    try:
        found = contradiction(manifest, role, data)
    except FormatError as error:
        raise bad(f"manifest_json.files.{role}", str(error)) from error
    if found:
        raise bad("manifest_json.insecure", f"{found}: say what the key is")


def _circuit_message(circuit: KnownCircuit, fleet: FleetView) -> fleet_pb2.Circuit:
    entry, manifest = circuit.entry, circuit.entry.manifest
    refs = {
        file.role: types_pb2.BlobRef(sha256=file.ref.sha256, size_bytes=file.ref.size_bytes)
        for file in circuit.files
    }
    return fleet_pb2.Circuit(
        circuit_id=entry.circuit_id,
        manifest_sha256=entry.manifest_sha256,
        curve=manifest.curve,
        family=_FAMILIES[manifest.family],
        n_public=manifest.n_public,
        n_wires=manifest.n_wires,
        domain=manifest.domain_size,
        vk=refs["vk"],
        files=[fleet_pb2.Circuit.File(role=role, blob=ref) for role, ref in refs.items()],
        input_formats=[
            fleet_pb2.Circuit.InputFormat(name=name, max_input_bytes=limit)
            for name, limit in manifest.input_formats.items()
        ],
        residency=[
            fleet_pb2.Circuit.KeyResidency(
                prover_id=prover.prover_id,
                state=int(key.state),  # type: ignore[arg-type]
                held=bytes_message(key.held),
            )
            for prover in fleet.provers
            if prover.actual is not None
            for key in prover.actual.keys
            if key.manifest_sha256 == entry.manifest_sha256
        ],
        manifest_json=manifest.to_json().decode(),
        insecure=manifest.insecure,
    )
