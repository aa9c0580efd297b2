"""A simulated honest prover: the pipeline's states and delays, real bytes, no proofs.

It reconciles to the newest Desired exactly as the wire's rules say, holds the bytes it says
it holds, and asserts the one thing no scheduler may break: what it truly occupies stays
within its total. Chance decides delays and, where a scenario allows it, failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from partita.scheduler.core.model import (
    NOTHING,
    Actual,
    Bytes,
    Condition,
    Desired,
    Failure,
    FailureKind,
    HeldKey,
    HeldLease,
    Hello,
    KeyShown,
    LeaseOrder,
    Phase,
    Proved,
)

Later = Callable[[float, Callable[[], None]], None]


@dataclass(slots=True)
class Held:
    order: LeaseOrder
    phase: Phase = Phase.FETCHING
    held: Bytes = NOTHING
    outcome: Proved | Failure | None = None
    stopping: bool = False


@dataclass(slots=True)
class SimProver:
    """One process. `later` schedules on the simulation's clock; `changed` is its mailbox."""

    hello: Hello
    rng: Random
    later: Later
    changed: Callable[[], None]
    bad_proofs: float = 0.0
    failures: float = 0.0
    hangs: float = 0.0
    alive: bool = True
    highest_epoch: int = 0
    desired: Desired | None = None
    applied: int = 0
    leases: dict[str, Held] = field(default_factory=dict)
    keys: dict[bytes, KeyShown] = field(default_factory=dict)
    proving: str = ""

    def actual(self) -> Actual:
        offers = {o.manifest_sha256: o for o in self.hello.offers}
        return Actual(
            self.applied,
            Condition.READY,
            "",
            tuple(
                HeldLease(
                    i,
                    h.order.job_id,
                    h.order.partition_index,
                    h.order.attempt,
                    Phase.STOPPING if h.stopping else h.phase,
                    h.held,
                    0,
                    h.outcome,
                )
                for i, h in self.leases.items()
            ),
            tuple(HeldKey(m, s, offers[m].key) for m, s in self.keys.items()),
        )

    def occupied(self) -> Bytes:
        total = NOTHING
        offers = {o.manifest_sha256: o for o in self.hello.offers}
        for held in self.leases.values():
            total = total + held.held
        for manifest in self.keys:
            total = total + offers[manifest].key
        return total

    def new_stream(self) -> None:
        """A new session counts revisions from 1 again."""
        self.desired = None
        self.applied = 0

    def receive(self, desired: Desired) -> bool:
        """Take in a Desired; False: its epoch is stale and the stream must be closed."""
        if desired.epoch < self.highest_epoch:
            return False
        self.highest_epoch = desired.epoch
        self.desired = desired
        self.reconcile()
        return True

    def reconcile(self) -> None:
        want = self.desired
        if want is None or not self.alive:
            return
        orders = {order.lease_id: order for order in want.leases}
        for lease_id, held in list(self.leases.items()):
            if lease_id not in orders:
                self._stop(lease_id, held)
        for lease_id, order in orders.items():
            if lease_id not in self.leases:
                self.leases[lease_id] = Held(order, held=order.reserved)
                self._after(0.05, 0.5, lease_id, self._fetched)
        self._reconcile_keys(want)
        self.applied = want.revision
        used = self.occupied()
        assert used.fits(self.hello.total), f"{self.hello.prover_id} holds {used}"
        self.changed()

    def _reconcile_keys(self, want: Desired) -> None:
        used = {held.order.manifest_sha256 for held in self.leases.values()}
        for manifest, state in list(self.keys.items()):
            if manifest not in want.keys and manifest not in used and state is KeyShown.READY:
                self.keys[manifest] = KeyShown.LEAVING
                self.later(self.rng.uniform(0.1, 2), partial(self._unloaded, manifest))
        for manifest in want.keys:
            if manifest not in self.keys:
                self.keys[manifest] = KeyShown.LOADING
                self.later(self.rng.uniform(0.5, 5), partial(self._loaded, manifest))

    def _loaded(self, manifest: bytes) -> None:
        if self.alive and self.keys.get(manifest) is KeyShown.LOADING:
            self.keys[manifest] = KeyShown.READY
            for lease_id in list(self.leases):
                self._start(lease_id)
            self.reconcile()
            self.changed()

    def _unloaded(self, manifest: bytes) -> None:
        if self.alive and self.keys.get(manifest) is KeyShown.LEAVING:
            del self.keys[manifest]
            self.reconcile()
            self.changed()

    def _after(self, least: float, most: float, lease_id: str, step: Callable[[str], None]) -> None:
        held = self.leases[lease_id]

        def run() -> None:
            if self.alive and self.leases.get(lease_id) is held and not held.stopping:
                step(lease_id)

        self.later(self.rng.uniform(least, most), run)

    def _enter(self, lease_id: str, phase: Phase) -> None:
        self.leases[lease_id].phase = phase
        self.changed()

    def _fetched(self, lease_id: str) -> None:
        self._enter(lease_id, Phase.WAITING_FOR_SYNTHESIS)
        self._start(lease_id)

    def _start(self, lease_id: str) -> None:
        held = self.leases[lease_id]
        ready = self.keys.get(held.order.manifest_sha256) is KeyShown.READY
        if held.phase is Phase.WAITING_FOR_SYNTHESIS and ready and not held.stopping:
            self._enter(lease_id, Phase.SYNTHESIZING)
            self._after(0.5, 3, lease_id, self._synthesized)

    def _synthesized(self, lease_id: str) -> None:
        self._enter(lease_id, Phase.WAITING_FOR_DEVICE)
        self._next_on_device()

    def _next_on_device(self) -> None:
        if self.proving:
            return
        waiting = [
            (-h.order.priority, h.order.job_seq, h.order.partition_index, i)
            for i, h in self.leases.items()
            if h.phase is Phase.WAITING_FOR_DEVICE and not h.stopping
        ]
        if waiting:
            self.proving = min(waiting)[3]
            self._enter(self.proving, Phase.PROVING)
            slow = 400.0 if self.rng.random() < self.hangs else 0.0
            self._after(1 + slow, 4 + slow, self.proving, self._device_done)

    def _device_done(self, lease_id: str) -> None:
        self.proving = ""
        held = self.leases[lease_id]
        held.held = Bytes(held.held.host // 2)
        self._enter(lease_id, Phase.FINISHING)
        self._after(0.1, 0.5, lease_id, self._finished)
        self._next_on_device()

    def _finished(self, lease_id: str) -> None:
        held = self.leases[lease_id]
        order = held.order
        if self.rng.random() < self.failures:
            held.outcome = Failure(FailureKind.COMPUTE, "CUDA_ERROR", "simulated")
        else:
            good = self.rng.random() >= self.bad_proofs
            held.outcome = Proved((b"proof of " if good else b"rubbish ") + order.input.sha256)
        held.held = NOTHING
        self._enter(lease_id, Phase.FINISHED)

    def _stop(self, lease_id: str, held: Held) -> None:
        if held.stopping:
            return
        held.stopping = True
        if held.phase is Phase.FINISHED:
            self._freed(lease_id, held)
            return
        self.later(self.rng.uniform(0.05, 2), lambda: self._freed(lease_id, held))

    def _freed(self, lease_id: str, held: Held) -> None:
        if not self.alive or self.leases.get(lease_id) is not held:
            return
        del self.leases[lease_id]
        if self.proving == lease_id:
            self.proving = ""
            self._next_on_device()
        self.reconcile()
        self.changed()
