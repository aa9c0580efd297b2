"""The prover's metrics: one table, filled from the core's events and effects in one place.

Durations are those between an effect and the event that answers it, so they are what the core
saw: queues between stages are not in them. Gauges are read when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import total_of
from partita.service.metering import FAST_S, SLOW_S, Meter, Spec

if TYPE_CHECKING:
    from partita.prover.core.model import Actual, LeaseOrder
    from partita.prover.offers import Offer
    from partita.service.fingerprint import Fingerprint

_RATIO = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0)
_P = "partita_prover_"

SPECS = (
    Spec(
        f"{_P}stage_seconds",
        "histogram",
        "Stages that ended well: fetch, synthesis, device, finish (the part after the device).",
        ("circuit", "stage"),
        SLOW_S,
    ),
    Spec(f"{_P}failures_total", "counter", "Stages that failed.", ("circuit", "kind")),
    Spec(f"{_P}device_busy_seconds_total", "counter", "Time in which the device was held."),
    Spec(
        f"{_P}peak_ratio",
        "histogram",
        "Measured peak of a lease divided by what its offer announced; above 1 is a fault.",
        ("circuit",),
        _RATIO,
    ),
    Spec(f"{_P}key_load_seconds", "histogram", "Loads of proving keys.", ("circuit",), SLOW_S),
    Spec(f"{_P}key_loads_total", "counter", "Ends of loads.", ("circuit", "result")),
    Spec(
        f"{_P}memory_bytes",
        "gauge",
        "Host memory: total (announced), held (leases and keys), measured (the process).",
        ("what",),
    ),
    Spec(f"{_P}leases", "gauge", "Held leases by phase.", ("phase",)),
    Spec(f"{_P}keys", "gauge", "Held proving keys by state.", ("state",)),
    Spec(f"{_P}circuits", "gauge", "Known circuits.", ("usable",)),
    Spec(f"{_P}condition", "gauge", "1 for what the prover says of itself.", ("condition",)),
    Spec(f"{_P}link_up", "gauge", "1 while a scheduler is connected."),
    Spec(f"{_P}links_total", "counter", "Sessions with schedulers that began."),
    Spec(
        f"{_P}device_longest_gap_seconds",
        "gauge",
        "Longest time without progress on the device that was followed by progress; 20 times this "
        "is one of the watchdog's limits.",
    ),
    Spec(f"{_P}loop_lag_seconds", "histogram", "By how much the event loop is late.", (), FAST_S),
)


@dataclass(slots=True)
class _Held:
    """A lease between its first effect and its end."""

    order: LeaseOrder
    stage: str = ""
    since_ns: int = 0


class ProverMetrics:
    """The metrics of one prover.

    Args:
        build: what runs.
    """

    def __init__(self, build: Fingerprint) -> None:
        self._meter = Meter(SPECS, build)
        self._held: dict[str, _Held] = {}
        self._loading: dict[bytes, int] = {}
        self._circuits: dict[bytes, str] = {}

    def seen(self, event: ev.Event | None, effects: Iterable[fx.Effect], now_ns: int) -> None:
        """Take one event, None for a tick, and what followed from it."""
        match event:
            case ev.InputFetched() | ev.Synthesized() | ev.DeviceDone():
                self._ended(event.lease_id, now_ns)
                if isinstance(event, ev.DeviceDone) and event.lease_id in self._held:
                    self._begins(self._held[event.lease_id].order, "finish", now_ns)
            case ev.Proved():
                held = self._held.get(event.lease_id)
                self._ended(event.lease_id, now_ns)
                if held is not None and held.order.reserved.host:
                    ratio = event.peak.host / held.order.reserved.host
                    self._meter.observe(f"{_P}peak_ratio", ratio, held.order.circuit_id)
            case ev.StageFailed():
                held = self._broke(event.lease_id, now_ns)
                if held is not None:
                    kind = event.failure.kind.name.lower()
                    self._meter.count(f"{_P}failures_total", held.order.circuit_id, kind)
            case ev.StageStopped():
                self._broke(event.lease_id, now_ns)
            case ev.LeaseFreed():
                self._held.pop(event.lease_id, None)
            case ev.KeyLoaded() | ev.KeyFailed():
                self._loaded(event, now_ns)
            case ev.LinkUp():
                self._meter.count(f"{_P}links_total")
        for effect in effects:
            match effect:
                case fx.FetchInput(order):
                    self._begins(order, "fetch", now_ns)
                case fx.Synthesize(order):
                    self._begins(order, "synthesis", now_ns)
                case fx.Prove(order):
                    self._begins(order, "device", now_ns)
                case fx.LoadKey(manifest):
                    self._loading[manifest] = now_ns

    def _begins(self, order: LeaseOrder, stage: str, now_ns: int) -> None:
        self._circuits[order.manifest_sha256] = order.circuit_id
        self._held[order.lease_id] = _Held(order, stage, now_ns)

    def _ended(self, lease_id: str, now_ns: int) -> None:
        held = self._broke(lease_id, now_ns)
        if held is not None:
            spent_s = (now_ns - held.since_ns) / 1e9
            self._meter.observe(f"{_P}stage_seconds", spent_s, held.order.circuit_id, held.stage)

    def _broke(self, lease_id: str, now_ns: int) -> _Held | None:
        """Take the end of a stage, however it ended; the device was held until now."""
        held = self._held.get(lease_id)
        if held is not None and held.stage == "device":
            busy_s = (now_ns - held.since_ns) / 1e9
            self._meter.count(f"{_P}device_busy_seconds_total", by=busy_s)
        return held

    def _loaded(self, event: ev.KeyLoaded | ev.KeyFailed, now_ns: int) -> None:
        circuit = self._circuits.get(event.manifest_sha256, "unknown")
        since_ns = self._loading.pop(event.manifest_sha256, now_ns)
        well = isinstance(event, ev.KeyLoaded)
        self._meter.count(f"{_P}key_loads_total", circuit, "ready" if well else "failed")
        if well:
            self._meter.observe(f"{_P}key_load_seconds", (now_ns - since_ns) / 1e9, circuit)

    def offered(self, offers: Iterable[Offer]) -> None:
        """Take what is offered now: names of circuits, and how many are of use."""
        offers = list(offers)
        self._circuits.update({x.manifest_sha256: x.circuit_id for x in offers})
        usable = Counter(not x.unusable_reason for x in offers)
        for flag in (True, False):
            self._meter.set(f"{_P}circuits", usable[flag], str(flag).lower())

    def late(self, seconds: float) -> None:
        """Take by how much the event loop was late."""
        self._meter.observe(f"{_P}loop_lag_seconds", seconds)

    def expose(
        self,
        actual: Actual,
        *,
        total_bytes: int,
        measured_bytes: int,
        connected: bool,
        longest_gap_ns: int,
    ) -> bytes:
        """Return everything in Prometheus' text format.

        Args:
            actual: what is held.
            total_bytes: host memory that was announced.
            measured_bytes: host memory of the process.
            connected: whether a scheduler is.
            longest_gap_ns: the watchdog's longest gap.
        """
        held = total_of([x.held for x in actual.leases] + [x.held for x in actual.keys])
        memory = {"total": total_bytes, "held": held.host, "measured": measured_bytes}
        self._meter.replace(f"{_P}memory_bytes", (((what,), n) for what, n in memory.items()))
        phases = Counter((x.phase.name.lower(),) for x in actual.leases)
        self._meter.replace(f"{_P}leases", phases.items())
        states = Counter((x.state.name.lower(),) for x in actual.keys)
        self._meter.replace(f"{_P}keys", states.items())
        self._meter.replace(f"{_P}condition", [((actual.condition.name.lower(),), 1)])
        self._meter.set(f"{_P}link_up", connected)
        self._meter.set(f"{_P}device_longest_gap_seconds", longest_gap_ns / 1e9)
        return self._meter.exposition()
