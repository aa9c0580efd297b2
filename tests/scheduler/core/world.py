"""A scheduler core driven by hand: a store that answers at once, provers told what to do.

Every step is followed by `check()`. `World.now` moves only through `run`, which ticks whenever
the core asks for it, so no stall is simulated by accident.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import (
    Actual,
    BlobRef,
    Bytes,
    CircuitInfo,
    CircuitOffer,
    Condition,
    Failure,
    FailureKind,
    HeldKey,
    HeldLease,
    Hello,
    KeyShown,
    PartitionSpec,
    Phase,
    Priority,
    Proved,
    StatementSource,
    Trust,
    Verdict,
)
from partita.scheduler.core.views import ProverView

GIB = 1 << 30
START_NS = 1_800_000_000 * SECOND_NS


def manifest(circuit: str) -> bytes:
    return hashlib.sha256(circuit.encode()).digest()


def spec(tag: str, *, stated: bool = True) -> PartitionSpec:
    if not stated:
        return PartitionSpec(BlobRef(hashlib.sha256(tag.encode()).digest(), len(tag)))
    return PartitionSpec(
        BlobRef(hashlib.sha256(tag.encode()).digest(), len(tag)),
        inline=tag.encode(),
        statement=b"statement of " + tag.encode(),
        statement_source=StatementSource.SUBMITTED,
    )


def offer(
    circuit: str, key_gib: float = 2, peak_gib: float = 3, expected_s: int = 10, load_s: int = 60
) -> CircuitOffer:
    return CircuitOffer(
        circuit_id=circuit,
        manifest_sha256=manifest(circuit),
        key=Bytes(int(key_gib * GIB)),
        peak=Bytes(int(peak_gib * GIB)),
        after_release=Bytes(int(peak_gib * GIB / 2)),
        input_formats=("wtns",),
        load_time_ns=load_s * SECOND_NS,
        expected_ns=expected_s * SECOND_NS,
    )


def _held(view: ProverView) -> tuple[HeldLease, ...]:
    return view.actual.leases if view.actual is not None else ()


def _adopted(view: ProverView, lease_id: str) -> bool:
    """Tell whether the prover held the lease before it was granted: it goes on."""
    return any(held.lease_id == lease_id for held in _held(view))


class Store:
    """What is durable: rows by key, exactly as `records` says."""

    def __init__(self) -> None:
        self.jobs: dict[str, rec.JobAccepted] = {}
        self.partitions: dict[tuple[str, int], rec.PartitionRecord] = {}
        self.leases: dict[str, rec.LeaseRecord] = {}
        self.provers: dict[str, rec.ProverRecord] = {}
        self.pins: dict[tuple[bytes, str], rec.PinRecord] = {}
        self.mark_ns = 0

    def write(self, record: rec.Record) -> None:
        match record:
            case rec.JobAccepted():
                self.jobs[record.job.job_id] = record
            case rec.JobRecord():
                self.jobs[record.job_id] = replace(self.jobs[record.job_id], job=record)
            case rec.PartitionRecord():
                self.partitions[(record.job_id, record.index)] = record
            case rec.LeaseRecord():
                self.leases[record.lease_id] = record
            case rec.LeaseEnded():
                self.leases.pop(record.lease_id, None)
            case rec.ProverRecord():
                self.provers[record.prover_id] = record
            case rec.ProversForgotten():
                for prover_id in record.prover_ids:
                    self.provers.pop(prover_id, None)
            case rec.PinRecord(pinned=None):
                self.pins.pop((record.manifest_sha256, record.prover_id), None)
            case rec.PinRecord():
                self.pins[(record.manifest_sha256, record.prover_id)] = record
            case rec.ClockMark():
                self.mark_ns = record.now_ns
            case rec.JobForgotten():
                del self.jobs[record.job_id]
                for key in [k for k in self.partitions if k[0] == record.job_id]:
                    del self.partitions[key]

    def restored(self, epoch: int) -> ev.Restored:
        return ev.Restored(
            epoch,
            self.mark_ns,
            tuple(self.jobs.values()),
            tuple(self.partitions.values()),
            tuple(self.leases.values()),
            tuple(self.provers.values()),
            tuple(self.pins.values()),
        )


@dataclass(frozen=True)
class Granted:
    """A grant as it looked right after its turn."""

    prover_id: str
    trust: Trust
    priority: Priority
    others: int
    """Leases in Desired beside it that have shown no outcome."""


class World:
    def __init__(self, *circuits: str, config: CoreConfig | None = None) -> None:
        self.config = config or CoreConfig()
        self.circuits = circuits or ("c",)
        self.now = START_NS
        self.store = Store()
        self.epoch = 0
        self.sessions = 0
        self.auto_verify = True
        self.boot()

    def boot(self, *, listen: bool = True) -> None:
        """Start a scheduler from the store, as after a SIGKILL."""
        self.epoch += 1
        self.core = SchedulerCore(self.config)
        self.store_up = True
        self.unsaved: list[fx.Persist] = []
        self.effects: list[fx.Effect] = []
        self.closed: list[tuple[int, str]] = []
        self.granted: list[Granted] = []
        self.do(self.store.restored(self.epoch))
        infos = tuple(CircuitInfo(c, manifest(c), ("wtns",)) for c in self.circuits)
        self.do(ev.CatalogueChanged(b"r1", infos))
        if listen:
            self.do(ev.ListenerOpened())

    def do(self, event: ev.Event) -> list[fx.Effect]:
        """Handle one event, then everything the store answers to it."""
        return self._after(self.core.handle(event, self.now))

    def _after(self, effects: list[fx.Effect]) -> list[fx.Effect]:
        self.core.check()
        self._note_grants(effects)
        self.effects.extend(effects)
        self.unsaved.extend(e for e in effects if isinstance(e, fx.Persist))
        self.closed.extend((e.session, e.reason) for e in effects if isinstance(e, fx.CloseSession))
        every = list(effects)
        if self.store_up:
            every += self.save()
        if self.auto_verify:
            for check in [e for e in effects if isinstance(e, fx.VerifyProof)]:
                good = check.proof == b"proof of " + check.statement
                every += self.verdict(check, Verdict.VALID if good else Verdict.INVALID)
        return every

    def _note_grants(self, effects: list[fx.Effect]) -> None:
        rows = {
            e.record.lease_id: e.record.prover_id
            for e in effects
            if isinstance(e, fx.Persist) and isinstance(e.record, rec.LeaseRecord)
        }
        if not rows:
            return
        for view in self.core.fleet().provers:
            orders = view.desired.leases if view.desired is not None else ()
            for order in orders:
                if order.lease_id in rows and order.attempt and not _adopted(view, order.lease_id):
                    done = {h.lease_id for h in _held(view) if h.outcome is not None}
                    others = sum(o.lease_id not in done for o in orders) - 1
                    self.granted.append(Granted(view.prover_id, view.trust, order.priority, others))

    def save(self) -> list[fx.Effect]:
        """Make everything emitted so far durable."""
        if not self.unsaved:
            return []
        for effect in self.unsaved:
            self.store.write(effect.record)
        last = self.unsaved[-1].n
        self.unsaved = []
        return self.do(ev.Persisted(last))

    def verdict(self, check: fx.VerifyProof, verdict: Verdict) -> list[fx.Effect]:
        return self.do(ev.ProofChecked(check.check_id, verdict, "pairing"))

    def run(self, seconds: float) -> list[fx.Effect]:
        """Let time pass, ticking whenever the core asks for it."""
        end = self.now + int(seconds * SECOND_NS)
        every: list[fx.Effect] = []
        while True:
            due = self.core.next_deadline_ns()
            self.now = end if due is None else min(max(due, self.now), end)
            every += self._after(self.core.tick(self.now))
            if self.now == end:
                return every

    def submit(
        self,
        job_id: str,
        n: int = 1,
        circuit: str = "c",
        priority: Priority = Priority.NORMAL,
        request_id: str = "",
        digest: bytes = b"d",
        stated: bool = True,
        **more: object,
    ) -> list[fx.Effect]:
        parts = tuple(spec(f"{job_id}/{i}", stated=stated) for i in range(n))
        return self.do(
            ev.JobSubmitted(
                job_id,
                request_id,
                digest,
                circuit,
                "wtns",
                parts,
                caller=len(self.effects) + 1,
                priority=priority,
                **more,  # type: ignore[arg-type]
            )
        )

    def retry(self, job_id: str, new_id: str) -> list[fx.Effect]:
        """Retry a job; `new_id` becomes the id if a new one is made."""
        return self.do(ev.JobRetried(new_id, job_id, caller=len(self.effects) + 1))

    def prover(self, prover_id: str) -> ProverView:
        return next(p for p in self.core.fleet().provers if p.prover_id == prover_id)

    def verifications(self) -> list[fx.VerifyProof]:
        return [e for e in self.effects if isinstance(e, fx.VerifyProof)]

    def persisted(self, kind: type) -> list[object]:
        return [
            e.record
            for e in self.effects
            if isinstance(e, fx.Persist) and isinstance(e.record, kind)
        ]


class Peer:
    """A prover driven by hand: it does only what a test tells it to."""

    def __init__(
        self,
        world: World,
        prover_id: str,
        *offers: CircuitOffer,
        total_gib: float = 64,
        slots: int = 4,
        express: int = 1,
        instance: str = "1",
    ) -> None:
        self.world = world
        self.hello = Hello(
            prover_id,
            f"{prover_id}-{instance}",
            Bytes(int(total_gib * GIB)),
            slots,
            express,
            offers=offers or tuple(offer(c) for c in world.circuits),
        )
        self.leases: dict[str, HeldLease] = {}
        self.keys: dict[bytes, HeldKey] = {}
        self.applied = 0
        self.condition = Condition.READY
        self.session = 0

    def connect(self) -> Peer:
        """Say Hello and report what is held."""
        self.dial()
        self.report()
        return self

    def dial(self) -> None:
        self.world.sessions += 1
        self.session = self.world.sessions
        self.applied = 0
        self.world.do(ev.SessionOpened(self.session, self.hello))

    def report(self, missing: frozenset[bytes] = frozenset()) -> list[fx.Effect]:
        actual = Actual(
            self.applied,
            self.condition,
            "",
            tuple(self.leases.values()),
            tuple(self.keys.values()),
        )
        return self.world.do(ev.SessionReported(self.session, actual, missing))

    def desired_ids(self) -> list[str]:
        return [order.lease_id for order in self.world.core.desired(self.session).leases]

    def wanted(self) -> list[tuple[str, int]]:
        """What the scheduler wants it to prove, in order."""
        leases = self.world.core.desired(self.session).leases
        return [(order.job_id, order.partition_index) for order in leases]

    def take_in(self) -> None:
        """Reconcile with Desired at once: start what is new, forget what is not wanted."""
        want = self.world.core.desired(self.session)
        self.applied = want.revision
        orders = {order.lease_id: order for order in want.leases}
        for lease_id in [i for i in self.leases if i not in orders]:
            del self.leases[lease_id]
        for lease_id, order in orders.items():
            if lease_id not in self.leases:
                self.leases[lease_id] = HeldLease(
                    lease_id,
                    order.job_id,
                    order.partition_index,
                    order.attempt,
                    Phase.FETCHING,
                    order.reserved,
                )
        offers = {o.manifest_sha256: o for o in self.hello.offers}
        used = {o.manifest_sha256 for o in orders.values()}
        for key in [k for k in self.keys if k not in want.keys and k not in used]:
            del self.keys[key]
        for key in want.keys:
            self.keys.setdefault(key, HeldKey(key, KeyShown.READY, offers[key].key))

    def sync(self) -> list[fx.Effect]:
        """Take in Desired and report it."""
        self.take_in()
        return self.report()

    def lease_of(self, job_id: str, index: int = 0) -> str:
        return next(
            i
            for i, held in self.leases.items()
            if (held.job_id, held.partition_index) == (job_id, index)
        )

    def phase(self, lease_id: str, phase: Phase) -> list[fx.Effect]:
        self.leases[lease_id] = replace(self.leases[lease_id], phase=phase)
        return self.report()

    def finish(self, lease_id: str, outcome: Proved | Failure) -> list[fx.Effect]:
        self.leases[lease_id] = replace(
            self.leases[lease_id], phase=Phase.FINISHED, outcome=outcome, held=Bytes()
        )
        return self.report()

    def prove(self, lease_id: str, *, good: bool = True, statement: bytes = b"") -> list[fx.Effect]:
        held = self.leases[lease_id]
        tag = f"{held.job_id}/{held.partition_index}".encode()
        truth = statement or b"statement of " + tag
        proof = b"proof of " + truth if good else b"rubbish"
        return self.finish(lease_id, Proved(proof, statement))

    def fail(self, lease_id: str, kind: FailureKind, reason: str = "WHY") -> list[fx.Effect]:
        return self.finish(lease_id, Failure(kind, reason))

    def hang_up(self, *, clean: bool = False) -> list[fx.Effect]:
        return self.world.do(ev.SessionClosed(self.session, clean))

    def die(self) -> list[fx.Effect]:
        """SIGKILL: the stream ends and nothing is held any more."""
        effects = self.hang_up()
        self.leases, self.keys = {}, {}
        number = int(self.hello.instance_id.rsplit("-", 1)[1]) + 1
        self.hello = replace(self.hello, instance_id=f"{self.hello.prover_id}-{number}")
        return effects
