"""The circuits of the scheduler's catalogue on this prover, kept in step with its revision.

On a new revision: ListCircuits, download what is missing by digest, build offers, tell. One
circuit after the other, so that a large one does not hold back the news of a small one's arrival.
A circuit that cannot be used is looked at again when its files change, and while one is missing
ever more rarely.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import grpc

from partita.circuits.circuit_files import CircuitFiles
from partita.circuits.errors import CatalogueError
from partita.groth16.errors import Groth16Error
from partita.prover.connection import ConnectionLostError, surviving_close
from partita.prover.offers import Circuit, OfferRules, broken_circuit, build_circuit
from partita.service import logs
from partita.v1 import blobs_pb2, blobs_pb2_grpc, fleet_pb2, fleet_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from partita.circuits.packed import PackedKeys
    from partita.groth16.selftest import KnownAnswers
    from partita.prover.core.model import Bytes
    from partita.prover.offers import Offer

_RETRY_S = 1.0
_RECHECK_S = 30.0
_LEAST_OFTEN_S = 900.0
_NEEDED_ROLES = frozenset({"zkey", "params", "wasm", "r1cs", "sym"})
_Name = tuple[str, bytes]
_Stamps = tuple[tuple[str, int, int] | None, ...]
"""Path, size and time of change of each file of a circuit; None where it is not here."""


@dataclass(frozen=True, slots=True)
class _Unusable:
    """A circuit that cannot be used.

    Attributes:
        circuit: as it is listed.
        stamps: of its files, before it was tried.
        tries: how often it was tried without any change.
        due_s: when the loop's clock says that a missing file is asked for again.
    """

    circuit: fleet_pb2.Circuit
    stamps: _Stamps
    tries: int
    due_s: float


_log = logs.get("circuits")


class Circuits:
    """The circuits of one scheduler's catalogue; make it on a running event loop.

    Args:
        root: `DATA_DIR/circuits`; files of the local catalogue in it are used as they are.
        packed_keys: `DATA_DIR/packed`.
        rules: what offers depend on.
        known_answers: what the backend must give before a circuit is offered.
        channel: waits for a scheduler and returns the channel to it.
        changed: told whenever the offers changed.
    """

    def __init__(
        self,
        root: Path,
        packed_keys: PackedKeys,
        rules: OfferRules,
        known_answers: KnownAnswers,
        *,
        channel: Callable[[], Awaitable[grpc.aio.Channel]],
        changed: Callable[[], None],
    ) -> None:
        self._root = root
        self.packed_keys = packed_keys
        self.checked: set[bytes] = set()
        """Manifests of the keys that were checked as a whole in this process."""
        self._rules = rules
        self._known_answers = known_answers
        self._channel = channel
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._known: dict[_Name, Circuit] = {}
        self._unusable: dict[_Name, _Unusable] = {}
        self._again: set[_Name] = set()
        """Which of them are to be tried again."""
        self._revision = b""
        self._wanted = b""
        self._wake = asyncio.Event()

    @property
    def offers(self) -> list[Offer]:
        """The offers of all circuits, usable or not, by name."""
        known = sorted(self._known.items())
        return [self.offer_of(circuit) for _, circuit in known]

    def offer_of(self, circuit: Circuit) -> Offer:
        """The offer of a circuit as it is now."""
        return circuit.offer_now(self.packed_keys, self.checked)

    def key_bytes(self) -> dict[bytes, Bytes]:
        """Return what the key of each usable circuit takes, by manifest digest."""
        return {x.manifest_sha256: x.key for x in self.offers if not x.unusable_reason}

    def usable(self, manifest_sha256: bytes) -> Circuit | None:
        """Return a usable circuit with this manifest, whatever its name."""
        for circuit in self._known.values():
            offer = circuit.offer
            if offer.manifest_sha256 == manifest_sha256 and not offer.unusable_reason:
                return circuit
        return None

    def named(self, circuit_id: str) -> Circuit | None:
        """Return the circuit of that name, usable or not."""
        found = [x for (name, _), x in self._known.items() if name == circuit_id]
        return found[-1] if found else None

    def files(self) -> CircuitFiles:
        """Return the files of this machine, for use on one thread."""
        return CircuitFiles(self._root)

    def offer_changed(self) -> None:
        """What an offer says of its key is different now; from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._changed)

    def revision(self, revision: bytes) -> None:
        """The scheduler's catalogue has this revision."""
        if revision and revision != self._wanted:
            self._wanted = revision
            self._wake.set()

    async def run(self) -> None:
        """Follow the catalogue until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_RECHECK_S if self._unusable else None):
                    await self._wake.wait()
            except TimeoutError:
                if not await asyncio.to_thread(self._look_again):
                    continue
            self._wake.clear()
            try:
                with surviving_close():
                    await self._sync()
            except (grpc.aio.AioRpcError, ConnectionLostError) as error:
                _log.warning("circuits.retry", detail=str(error))
                await asyncio.sleep(_RETRY_S)
                self._wake.set()

    async def _sync(self) -> None:
        channel = await self._channel()
        stub = fleet_pb2_grpc.FleetServiceStub(channel)
        answer = await stub.ListCircuits(fleet_pb2.ListCircuitsRequest())
        if answer.catalogue_revision == self._revision and not self._again:
            return
        listed: dict[_Name, fleet_pb2.Circuit] = {
            (x.circuit_id, x.manifest_sha256): x for x in answer.circuits
        }
        self._again &= listed.keys()
        kept = {name: x for name, x in self._known.items() if name in listed}
        if len(kept) != len(self._known):
            self._known = kept
            self._unusable = {name: x for name, x in self._unusable.items() if name in listed}
            self._changed()
        for name, circuit in sorted(listed.items(), key=lambda item: _size_bytes(item[1])):
            if name in self._known and name not in self._again:
                continue
            self._again.discard(name)
            stamps = await asyncio.to_thread(self._stamps, circuit)
            built = await self._build(circuit, channel)
            tried = self._unusable.pop(name, None)
            reason = built.offer.unusable_reason
            if reason:
                same = tried is not None and tried.stamps == stamps
                tries = tried.tries + 1 if tried is not None and same else 0
                due_s = self._loop.time() + wait_s(tries)
                self._unusable[name] = _Unusable(circuit, stamps, tries, due_s)
            before = self._known.get(name)
            if before is not None and before.offer == built.offer:
                _log.warning("circuits.retry", detail=f"{circuit.circuit_id}: {reason}")
                continue
            self._known = {**self._known, name: built}
            _log.info(
                "circuits.offered",
                circuit_id=circuit.circuit_id,
                unusable_reason=built.offer.unusable_reason,
            )
            self._changed()
        self._revision = answer.catalogue_revision

    def _look_again(self) -> bool:
        """Tell whether the files of an unusable circuit have changed, or are still to come."""
        for name, known in self._unusable.items():
            now = self._stamps(known.circuit)
            if now != known.stamps or (None in now and self._loop.time() >= known.due_s):
                self._again.add(name)
        return bool(self._again)

    def _stamps(self, circuit: fleet_pb2.Circuit) -> _Stamps:
        files, found = self.files(), []
        for file in circuit.files:
            if file.role not in _NEEDED_ROLES:
                continue
            try:
                path = files.path_of(file.blob.sha256.hex())
                about = None if path is None else path.stat()
            except OSError:
                about = None
            found.append(None if about is None else (str(path), about.st_size, about.st_ctime_ns))
        return tuple(found)

    async def _build(self, circuit: fleet_pb2.Circuit, channel: grpc.aio.Channel) -> Circuit:
        digest = circuit.manifest_sha256
        try:
            for file in circuit.files:
                if file.role in _NEEDED_ROLES and not file.local:
                    await self._bring(file, channel)
        except (Groth16Error, CatalogueError, OSError) as error:
            return broken_circuit(circuit.circuit_id, digest, f"{file.role}: {error}")
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            reason = f"{file.role}: the scheduler does not serve it: {error.details()}"
            return broken_circuit(circuit.circuit_id, digest, reason)
        return await asyncio.to_thread(
            self._tested, circuit.circuit_id, circuit.manifest_json.encode(), digest
        )

    def _tested(self, circuit_id: str, manifest_json: bytes, digest: bytes) -> Circuit:
        """On a thread: build a circuit; without known answers it is only shown."""
        built = build_circuit(
            circuit_id, manifest_json, digest, self.files(), self.packed_keys, self._rules
        )
        if built.manifest is None:
            return built
        try:
            self._known_answers.require(built.manifest.curve, built.manifest.family)
        except Groth16Error as error:
            _log.error("circuits.self_test", circuit_id=circuit_id, reason=str(error))
            broken = broken_circuit(circuit_id, digest, str(error))
            return replace(built, offer=broken.offer)
        return built

    async def _bring(self, file: fleet_pb2.Circuit.File, channel: grpc.aio.Channel) -> None:
        """Download a file unless it is here."""
        files, name = self.files(), file.blob.sha256.hex()
        if await asyncio.to_thread(files.has, name):
            return
        stub = blobs_pb2_grpc.BlobServiceStub(channel)
        with files.receive(name, file.blob.size_bytes) as receiving:
            async for message in stub.Download(blobs_pb2.DownloadRequest(blob=file.blob)):
                await asyncio.to_thread(receiving.write, message.chunk)
            await asyncio.to_thread(receiving.finish)
        _log.info("circuits.received", role=file.role, size_bytes=file.blob.size_bytes)


def wait_s(tries: int) -> float:
    """How long a file that is missing is not asked for, after so many tries without a change."""
    return min(_RECHECK_S * 2.0 ** min(tries, 16), _LEAST_OFTEN_S)


def _size_bytes(circuit: fleet_pb2.Circuit) -> int:
    return sum(file.blob.size_bytes for file in circuit.files)
