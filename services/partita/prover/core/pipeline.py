"""The prover's core: decides what each lease and key does next; threads obey.

| held lease | next |
|---|---|
| FETCHING | input and key are here → WAITING_FOR_SYNTHESIS |
| WAITING_FOR_SYNTHESIS | least key first, a thread is free → SYNTHESIZING |
| SYNTHESIZING | statement as ordered → WAITING_FOR_DEVICE (least key first) |
| PROVING | holds the device; device work done → FINISHING |
| FINISHING | host part, off the device → FINISHED with a proof |
| any: its stage fails | FINISHED with a failure |
| FINISHED | holds only its outcome until it is not desired |
| any, not desired | STOPPING → memory given back → forgotten |

One more synthesis thread takes CRITICAL leases only.

Draining (told to stop, or Desired.drain): what has not started synthesis and every new lease is
handed back; the rest finishes; at the grace's end what is left is handed back. Told to stop, it
exits once nothing is held, at the grace's end at the latest. A fault hands everything back at
once, except that the lease on the device failed.

Pure: time comes in as `now_ns`, and every effect that starts something is answered by one event
(see `effects`). `check` raises CoreBug when an invariant does not hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.invariants import check
from partita.prover.core.keys import KeyTable
from partita.prover.core.leases import Lease, Marks, Stage
from partita.prover.core.model import (
    EXIT_DRAINED,
    EXIT_FAULTED,
    NOTHING,
    Actual,
    Bytes,
    Condition,
    CoreBug,
    CoreConfig,
    Desired,
    Failure,
    FailureKind,
    LeaseOrder,
    Phase,
    Priority,
    Proof,
    total_of,
)

if TYPE_CHECKING:
    from partita.prover.core.effects import Effect
    from partita.prover.core.events import Event

_NOT_STARTED = (Phase.FETCHING, Phase.WAITING_FOR_SYNTHESIS)


class PipelineCore:
    """The tables of one prover process.

    Args:
        config: its limits.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self._leases: dict[str, Lease] = {}
        self._wanted: dict[str, LeaseOrder] = {}
        self._keys = KeyTable()
        self._applied = 0
        self._linked = False
        self._unlinked_ns = 0
        self._stopping = ""
        self._drain_wanted = False
        self._drain_since_ns: int | None = None
        self._fault = ""
        self._fault_since_ns = 0
        self._exited = False
        self._out: list[Effect] = []
        self._last_view = Actual()

    # -- what the shell calls ---------------------------------------------------------------

    def handle(self, event: Event, now_ns: int) -> list[Effect]:
        """Take in one event and return what it leads to, in order."""
        match event:
            case ev.DesiredReceived(desired):
                self._desired(desired, now_ns)
            case ev.OffersChanged(key_bytes):
                self._keys.offer(key_bytes)
            case ev.LinkUp():
                self._linked, self._applied = True, 0
            case ev.LinkDown():
                self._linked, self._unlinked_ns = False, now_ns
            case ev.Stopping(reason):
                self._stopping = self._stopping or reason
            case ev.Faulted(reason):
                self._faulted(reason, now_ns)
            case ev.KeyLoaded(manifest, held):
                self._keys.loaded(manifest, held)
            case ev.KeyFailed(manifest, reason):
                self._keys.failed(manifest, reason)
            case ev.KeyUnloaded(manifest):
                self._keys.unloaded(manifest)
            case _:
                self._lease_event(event, now_ns)
        return self._settle(now_ns)

    def tick(self, now_ns: int) -> list[Effect]:
        """Act on deadlines that have passed."""
        return self._settle(now_ns)

    def next_deadline_ns(self) -> int | None:
        """Return when `tick` has something to do, None if never."""
        if self._exited:
            return None
        deadlines = []
        if self._fault:
            deadlines.append(self._fault_since_ns + self.config.fault_grace_ns)
        elif self._drain_since_ns is not None and (
            self._stopping or any(lease.going_on for lease in self._leases.values())
        ):
            deadlines.append(self._drain_since_ns + self.config.grace_ns)
        deadlines += [self._orphaned_at_ns(lease) for lease in self._orphans()]
        return min(deadlines, default=None)

    def actual(self) -> Actual:
        """Return everything that is held, as the scheduler shall see it."""
        references = self._references()
        return Actual(
            applied=self._applied,
            condition=self.condition,
            reason=self._fault or self._stopping or ("drained" if self._drain_wanted else ""),
            leases=tuple(
                lease.view() for lease in sorted(self._leases.values(), key=lambda x: x.order.key)
            ),
            keys=self._keys.view(references),
        )

    @property
    def condition(self) -> Condition:
        """How the prover is."""
        if self._fault:
            return Condition.FAULTED
        return Condition.DRAINING if self._draining else Condition.READY

    def check(self) -> None:
        """Raise CoreBug unless every invariant holds."""
        check(list(self._leases.values()), self._keys, self.actual(), self.config)

    # -- events -----------------------------------------------------------------------------

    def _desired(self, desired: Desired, now_ns: int) -> None:
        if not self._linked or desired.revision <= self._applied:
            return
        self._applied = desired.revision
        self._wanted = {order.lease_id: order for order in desired.leases}
        self._keys.want(frozenset(desired.keys))
        self._drain_wanted = desired.drain
        self._update_drain(now_ns)
        for lease_id, lease in list(self._leases.items()):
            order = self._wanted.get(lease_id)
            if order is not None:
                lease.order = replace(order, inline=b"")
            elif lease.going_on:
                lease.doomed = True
            elif lease.freed:
                del self._leases[lease_id]

    def _faulted(self, reason: str, now_ns: int) -> None:
        if self._fault:
            return
        self._fault, self._fault_since_ns = reason, now_ns
        for lease in self._leases.values():
            if lease.going_on:
                failure = (
                    Failure(FailureKind.COMPUTE, "DEVICE_FAULT", reason)
                    if lease.on_device
                    else _handed_back(f"the device failed: {reason}")
                )
                self._end(lease, failure, now_ns)

    def _lease_event(self, event: Event, now_ns: int) -> None:
        lease_id: str = event.lease_id  # type: ignore[union-attr]
        lease = self._leases.get(lease_id)
        if lease is None:
            raise CoreBug(f"{event} is of a lease that is not held")
        match event:
            case ev.Released(_, held):
                lease.held = lease.held.least(held)
            case ev.DeviceDone():
                self._stage_of(lease, Stage.DEVICE, event)
                lease.on_device, lease.phase = False, Phase.FINISHING
            case ev.Progressed(_, permille):
                lease.permille = permille
            case ev.LeaseFreed():
                self._freed(lease)
            case ev.InputFetched():
                self._stage_of(lease, Stage.FETCH, event)
                lease.stage, lease.input_here = None, True
                lease.marks.fetched_ns = now_ns
            case ev.Synthesized(_, statement, digest):
                self._stage_of(lease, Stage.SYNTHESIS, event)
                self._synthesized(lease, statement, digest, now_ns)
            case ev.Proved(_, proof, peak):
                self._stage_of(lease, Stage.DEVICE, event)
                lease.stage, lease.on_device = None, False
                self._end(
                    lease, Proof(proof, lease.statement, lease.marks.timings(now_ns), peak), now_ns
                )
            case ev.StageFailed(_, failure):
                self._stage_ended(lease, event)
                self._end(lease, failure, now_ns)
            case ev.StageStopped():
                self._stage_ended(lease, event)
                if lease.going_on:
                    raise CoreBug(f"lease {lease_id} was stopped without being asked to")
            case _:
                raise CoreBug(f"unknown event {event}")

    def _synthesized(self, lease: Lease, statement: bytes, digest: bytes, now_ns: int) -> None:
        lease.stage = None
        lease.marks.synthesized_ns = now_ns
        lease.phase, lease.permille = Phase.WAITING_FOR_DEVICE, 0
        ordered = lease.order.statement_sha256
        if not ordered:
            lease.statement = statement
        elif ordered != digest:
            self._end(
                lease,
                Failure(
                    FailureKind.INVALID_INPUT,
                    "STATEMENT_MISMATCH",
                    f"the input's public values have SHA-256 {digest.hex()}, the job was submitted "
                    f"with a statement of {ordered.hex()}; submit the statement of this input",
                ),
                now_ns,
            )

    def _stage_of(self, lease: Lease, stage: Stage, event: Event) -> None:
        if lease.stage is not stage:
            raise CoreBug(f"{event} does not answer the stage {lease.stage}")

    def _stage_ended(self, lease: Lease, event: Event) -> None:
        if lease.stage is None:
            raise CoreBug(f"{event} answers no stage")
        lease.stage, lease.on_device = None, False

    def _freed(self, lease: Lease) -> None:
        if not lease.free_sent or lease.freed:
            raise CoreBug(f"lease {lease.order.lease_id} was freed without being asked to")
        lease.freed, lease.held = True, NOTHING
        if lease.doomed or lease.order.lease_id not in self._wanted:
            del self._leases[lease.order.lease_id]

    def _end(self, lease: Lease, outcome: Proof | Failure, now_ns: int) -> None:
        """Fix the outcome; the first one stays, and an unwanted lease gets none."""
        if lease.going_on:
            lease.outcome, lease.ended_ns = outcome, now_ns

    # -- what follows from every event ------------------------------------------------------

    def _settle(self, now_ns: int) -> list[Effect]:
        self._out = []
        self._update_drain(now_ns)
        self._accept(now_ns)
        self._hand_back(now_ns)
        self._fail_without_key(now_ns)
        self._give_up_stages()
        self._forget_orphans(now_ns)
        room = self._room()
        self._out += self._keys.advance(self._references(), room)
        self._fail_without_key(now_ns)
        self._give_up_stages()
        self._start_stages(now_ns)
        self._announce()
        self._maybe_exit(now_ns)
        return self._out

    @property
    def _draining(self) -> bool:
        return self._drain_since_ns is not None

    def _update_drain(self, now_ns: int) -> None:
        if not (self._stopping or self._drain_wanted):
            self._drain_since_ns = None
        elif self._drain_since_ns is None:
            self._drain_since_ns = now_ns

    def _accept(self, now_ns: int) -> None:
        if not (self._linked and self._applied):
            return
        for lease_id, order in sorted(self._wanted.items(), key=lambda item: item[1].key):
            if lease_id in self._leases:
                continue
            lease = self._leases[lease_id] = Lease(order, Marks(now_ns))
            room = self._room()
            if self._fault:
                refused = _handed_back(f"the device failed: {self._fault}")
            elif self._draining:
                refused = _handed_back(self._stopping or "the prover is drained")
            elif not order.reserved.fits(room):
                refused = Failure(
                    FailureKind.RESOURCE,
                    "OVER_BUDGET",
                    f"the lease reserves {order.reserved}, {room} of {self.config.total} are free",
                )
            else:
                lease.held, lease.stage = order.reserved, Stage.FETCH
                self._out.append(fx.FetchInput(order))
                lease.order = replace(order, inline=b"")
                continue
            lease.order = replace(order, inline=b"")
            lease.free_sent = lease.freed = True
            self._end(lease, refused, now_ns)

    def _hand_back(self, now_ns: int) -> None:
        if self._drain_since_ns is None:
            return
        over = now_ns >= self._drain_since_ns + self.config.grace_ns
        why = self._stopping or "the prover is drained"
        for lease in self._leases.values():
            if lease.going_on and (over or lease.phase in _NOT_STARTED):
                self._end(lease, _handed_back(why), now_ns)

    def _fail_without_key(self, now_ns: int) -> None:
        for lease in self._leases.values():
            reason = self._keys.failure(lease.order.manifest_sha256)
            if reason is not None and lease.going_on:
                detail = f"the proving key of {lease.order.circuit_id} cannot be loaded: {reason}"
                self._end(lease, Failure(FailureKind.INTERNAL, "KEY_FAILED", detail), now_ns)

    def _give_up_stages(self) -> None:
        for lease in self._leases.values():
            if lease.going_on or lease.freed:
                continue
            if lease.stage is not None and not lease.stop_sent:
                lease.stop_sent = True
                self._out.append(fx.StopStage(lease.order.lease_id))
            elif lease.stage is None and not lease.free_sent:
                lease.free_sent = True
                self._out.append(fx.FreeLease(lease.order.lease_id))

    def _start_stages(self, now_ns: int) -> None:
        going_on = sorted(
            (x for x in self._leases.values() if x.going_on), key=lambda x: x.order.key
        )
        for lease in going_on:
            ready = lease.input_here and self._keys.is_ready(lease.order.manifest_sha256)
            if lease.phase is Phase.FETCHING and ready:
                lease.phase, lease.marks.ready_ns = Phase.WAITING_FOR_SYNTHESIS, now_ns
        synthesizing = [x for x in self._leases.values() if x.stage is Stage.SYNTHESIS]
        free = self.config.synthesis_threads - sum(not x.express for x in synthesizing)
        express_free = not any(x.express for x in synthesizing)
        for lease in going_on:
            if lease.phase is not Phase.WAITING_FOR_SYNTHESIS:
                continue
            if free > 0:
                free, lease.express = free - 1, False
            elif express_free and lease.order.priority is Priority.CRITICAL:
                express_free, lease.express = False, True
            else:
                continue
            lease.stage, lease.phase = Stage.SYNTHESIS, Phase.SYNTHESIZING
            lease.permille, lease.marks.synthesis_ns = 0, now_ns
            self._out.append(fx.Synthesize(lease.order, lease.express))
        if any(x.on_device for x in self._leases.values()):
            return
        for lease in going_on:
            if lease.phase is Phase.WAITING_FOR_DEVICE:
                lease.stage, lease.phase, lease.on_device = Stage.DEVICE, Phase.PROVING, True
                lease.permille, lease.marks.proving_ns = 0, now_ns
                self._out.append(fx.Prove(lease.order))
                return

    def _orphans(self) -> list[Lease]:
        if self._linked:
            return []
        return [x for x in self._leases.values() if x.freed and x.outcome is not None]

    def _orphaned_at_ns(self, lease: Lease) -> int:
        return max(lease.ended_ns, self._unlinked_ns) + self.config.orphan_ttl_ns

    def _forget_orphans(self, now_ns: int) -> None:
        for lease in self._orphans():
            if now_ns >= self._orphaned_at_ns(lease):
                del self._leases[lease.order.lease_id]
                self._wanted.pop(lease.order.lease_id, None)

    def _announce(self) -> None:
        view = self.actual()
        if view == self._last_view:
            return
        urgent = _urgent_part(view) != _urgent_part(self._last_view)
        self._last_view = view
        self._out.append(fx.SendActual(urgent))

    def _maybe_exit(self, now_ns: int) -> None:
        if self._exited:
            return
        if self._fault:
            over = now_ns >= self._fault_since_ns + self.config.fault_grace_ns
            code = EXIT_FAULTED
        elif self._stopping and self._drain_since_ns is not None:
            over = now_ns >= self._drain_since_ns + self.config.grace_ns
            code = EXIT_DRAINED
        else:
            return
        if over or not self._leases:
            self._exited = True
            self._out.append(fx.Exit(code))

    def _references(self) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        for lease in self._leases.values():
            if not lease.freed:
                manifest = lease.order.manifest_sha256
                counts[manifest] = counts.get(manifest, 0) + 1
        return counts

    def _room(self) -> Bytes:
        held = total_of([x.held for x in self._leases.values()]) + self._keys.held()
        total = self.config.total
        return Bytes(total.host - held.host, total.device - held.device)


def _handed_back(why: str) -> Failure:
    return Failure(FailureKind.HANDED_BACK, "HANDED_BACK", why)


def _urgent_part(view: Actual) -> tuple[object, ...]:
    leases = tuple((x.lease_id, x.phase, x.outcome) for x in view.leases)
    return (view.condition, leases)
