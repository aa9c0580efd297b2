"""A deterministic cluster: scheduler core, store, network, provers, clients, one clock.

Everything random comes from one seed. The network is a stream per session with a mailbox of
one in each direction: newer state replaces older (drop), arrives late (delay), may arrive twice
(duplicate), and an old session's messages may arrive after a new one's (reorder). Processes
are killed and paused on either side, and the store stops for a while. At `heal` all faults end;
then every job must end in bounded time.

Held throughout, besides `check()` after every step of the core: a slot is filled once, with the
right bytes; a partition that is durably PROVED is never leased again; a prover's true bytes stay
within its total.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core import records as rec
from partita.scheduler.core.config import SECOND_NS, CoreConfig
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import (
    Bytes,
    CircuitInfo,
    Desired,
    Hello,
    PartitionSpec,
    PartitionState,
    Priority,
    Verdict,
)
from partita.scheduler.core.views import JobView
from tests.scheduler.core.world import GIB, START_NS, Store, manifest, offer, spec
from tests.sim.prover import SimProver
from tests.sim.scenario import Scenario

CIRCUITS = ("a", "b", "c")


def proof_of(statement: bytes) -> bytes:
    """The one proof that this simulation's verifier accepts for a statement."""
    tag = statement.removeprefix(b"statement of ")
    return b"proof of " + hashlib.sha256(tag).digest()


@dataclass
class Link:
    """One stream between a prover and the scheduler."""

    session: int
    prover: int
    process: SimProver
    up: bool = True
    to_prover: Desired | None = None
    to_scheduler: bool = False


@dataclass
class Submission:
    """What a client asked for; it asks again until it is answered."""

    job_id: str
    request_id: str
    digest: bytes
    circuit: str
    specs: tuple[PartitionSpec, ...]
    priority: Priority
    answered: str = ""
    cancelled: bool = False


@dataclass
class Cluster:
    seed: int
    scenario: Scenario = field(default_factory=Scenario)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.config = CoreConfig(
            lease_floor_ns=120 * SECOND_NS,
            lease_factor=2,
            key_switch_factor=self.rng.choice((0, 0, 2, 8)),
            quarantine_debits=3 if self.scenario.quarantine else 1 << 30,
        )
        self.now = START_NS
        self.order = itertools.count()
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.store = Store()
        self.store_up = True
        self.epoch = 0
        self.generation = 0
        self.next_session = itertools.count(1)
        self.job_ids = itertools.count(1)
        self.links: dict[int, Link] = {}
        self.paused: dict[int, int] = {}
        self.core: SchedulerCore | None = None
        self.filled: dict[tuple[str, int], bytes] = {}
        self.grants = 0
        self.grants_by: dict[str, int] = {}
        self.steps = 0
        self.submissions: list[Submission] = []
        self.provers: list[SimProver] = []
        self.restarts: list[int] = []
        self.healed = False
        for index in range(self.scenario.provers):
            self.restarts.append(0)
            self.provers.append(self._process(index))

    # --- clock -----------------------------------------------------------------------------

    def later(self, seconds: float, step: Callable[[], None]) -> None:
        at = self.now + int(seconds * SECOND_NS)
        heapq.heappush(self.queue, (at, next(self.order), step))

    def run(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Run until the condition holds; False if simulated time ran out."""
        end = self.now + int(limit_s * SECOND_NS)
        while not until():
            if not self.queue or self.queue[0][0] > end:
                return False
            at, _, step = heapq.heappop(self.queue)
            self.now = max(self.now, at)
            step()
        return True

    # --- scheduler -------------------------------------------------------------------------

    def boot(self) -> None:
        self.epoch += 1
        self.generation += 1
        self.core = SchedulerCore(self.config)
        self.unsaved: list[fx.Persist] = []
        self.saving = False
        self.do(self.store.restored(self.epoch))
        infos = tuple(CircuitInfo(c, manifest(c), ("wtns",)) for c in CIRCUITS)
        self.do(ev.CatalogueChanged(b"r", infos))
        self.do(ev.ListenerOpened())
        for index in range(len(self.provers)):
            self.later(self.rng.uniform(0.1, 3), partial(self.dial, index))

    def kill_scheduler(self) -> None:
        if self.core is None:
            return
        self.core = None
        self.generation += 1
        for link in list(self.links.values()):
            link.up = False
        self.links = {}
        self.later(self.rng.uniform(0.5, 30), self.boot)

    def do(self, event: ev.Event) -> None:
        if self.core is not None:
            self._after(self.core.handle(event, self.now))

    def _tick(self, generation: int) -> None:
        if generation == self.generation and self.core is not None:
            self._after(self.core.tick(self.now))

    def _after(self, effects: list[fx.Effect]) -> None:
        core = self.core
        if core is None:
            return
        self.steps += 1
        if self.scenario.check:
            core.check()
        for effect in effects:
            self._execute(core, effect)
        due = core.next_deadline_ns()
        if due is not None:
            wait_s = max(due - self.now, 0) / SECOND_NS + 1e-6
            generation = self.generation
            self.later(wait_s, lambda: self._tick(generation))

    def _execute(self, core: SchedulerCore, effect: fx.Effect) -> None:
        generation = self.generation

        def alive(step: Callable[[], None]) -> Callable[[], None]:
            return lambda: step() if generation == self.generation else None

        match effect:
            case fx.Persist():
                self._note(effect.record)
                self.unsaved.append(effect)
                self._save_soon()
            case fx.VerifyProof():
                good = effect.proof == proof_of(effect.statement)
                verdict = Verdict.VALID if good else Verdict.INVALID
                if not self.healed and self.rng.random() < self.scenario.unchecked:
                    verdict = Verdict.UNCHECKED
                answer = ev.ProofChecked(effect.check_id, verdict)
                self.later(self.rng.uniform(0.01, 1.5), alive(lambda: self.do(answer)))
            case fx.SyncProver():
                link = self.links.get(effect.session)
                if link is not None:
                    self._post(link, core.desired(effect.session))
            case fx.CloseSession():
                self.cut(effect.session, 0.0)
                closed = ev.SessionClosed(effect.session)
                self.later(self.rng.uniform(0, 0.2), alive(lambda: self.do(closed)))
            case fx.Accept():
                self.submissions[effect.caller].answered = effect.job_id
                assert effect.job_id in self.store.jobs, "accepted and not durable"
            case fx.Refuse():
                raise AssertionError(f"refused: {effect}")
            case _:
                pass

    def _note(self, record: rec.Record) -> None:
        if isinstance(record, rec.LeaseRecord):
            self.grants += 1
            self.grants_by[record.prover_id] = self.grants_by.get(record.prover_id, 0) + 1
            row = self.store.partitions.get((record.job_id, record.index))
            proved = row is not None and row.state is PartitionState.PROVED
            assert not proved, f"{record} though it is durably proved"

    def _save_soon(self) -> None:
        if self.saving:
            return
        self.saving = True
        generation = self.generation

        def save() -> None:
            if generation != self.generation:
                return
            if not self.store_up:
                self.later(0.5, save)
                return
            self.saving = False
            batch, self.unsaved = self.unsaved, []
            for effect in batch:
                self._commit(effect.record)
            self.do(ev.Persisted(batch[-1].n))

        self.later(self.rng.uniform(0.001, 0.05), save)

    def _commit(self, record: rec.Record) -> None:
        self.store.write(record)
        if isinstance(record, rec.PartitionRecord) and record.state is PartitionState.PROVED:
            key = (record.job_id, record.index)
            assert self.filled.setdefault(key, record.proof) == record.proof
            assert record.proof == proof_of(record.statement)

    # --- network ---------------------------------------------------------------------------

    def dial(self, index: int) -> None:
        """The prover's current process opens a stream, or tries again later."""
        process = self.provers[index]
        connected = any(link.process is process and link.up for link in self.links.values())
        if not process.alive or connected:
            return
        if self.core is None:
            self.later(self.rng.uniform(0.5, 5), lambda: self.dial(index))
            return
        session = next(self.next_session)
        link = self.links[session] = Link(session, index, process)
        process.new_stream()
        hello = replace(process.hello, highest_epoch=process.highest_epoch)
        self.do(ev.SessionOpened(session, hello))
        if session in self.links:
            self._report(link)
            self._beat(link)

    def _beat(self, link: Link) -> None:
        if link.up:
            self._report(link)
            self.later(5, lambda: self._beat(link))

    def changed(self, index: int, process: SimProver) -> None:
        for link in list(self.links.values()):
            if link.process is process:
                self._report(link)

    def _report(self, link: Link) -> None:
        """Mailbox of one: what is sent is the state at the time of sending."""
        if link.to_scheduler or not link.up:
            return
        link.to_scheduler = True

        def send() -> None:
            link.to_scheduler = False
            if not link.up or not link.process.alive:
                return
            if self.now < self.paused.get(link.prover, 0):
                link.to_scheduler = True
                self.later((self.paused[link.prover] - self.now) / SECOND_NS, send)
                return
            actual = link.process.actual()
            delay = self.rng.uniform(0.001, 0.1)
            for _ in range(2 if self.rng.random() < 0.05 else 1):
                self.later(
                    delay, lambda: self._arrive(link, ev.SessionReported(link.session, actual))
                )

        self.later(self.rng.uniform(0.001, 0.05), send)

    def _arrive(self, link: Link, event: ev.Event) -> None:
        if link.session in self.links:
            self.do(event)

    def _post(self, link: Link, desired: Desired) -> None:
        pending = link.to_prover is not None
        link.to_prover = desired
        if pending:
            return

        def deliver() -> None:
            if not link.up or not link.process.alive:
                return
            if self.now < self.paused.get(link.prover, 0):
                self.later((self.paused[link.prover] - self.now) / SECOND_NS, deliver)
                return
            newest, link.to_prover = link.to_prover, None
            if newest is not None and not link.process.receive(newest):
                self.cut(link.session, 0.0)

        self.later(self.rng.uniform(0.001, 0.2), deliver)

    def cut(self, session: int, notice_s: float | None = None) -> None:
        """The stream breaks: the prover redials, the scheduler notices in its own time."""
        link = self.links.get(session)
        if link is None or not link.up:
            return
        link.up = False
        generation = self.generation

        def notice() -> None:
            if generation == self.generation and self.links.pop(session, None) is not None:
                self.do(ev.SessionClosed(session))

        self.later(self.rng.uniform(0, 10) if notice_s is None else notice_s, notice)
        self.later(self.rng.uniform(0.5, 10), lambda: self.dial(link.prover))

    # --- provers ---------------------------------------------------------------------------

    def _process(self, index: int) -> SimProver:
        self.restarts[index] += 1
        shape = Random(self.seed * 1_000 + index)
        total = Bytes(shape.choice((11, 14, 24)) * GIB)
        offers = tuple(
            offer(c, shape.choice((2, 5)), shape.choice((3, 6)), expected_s=8, load_s=3)
            for c in CIRCUITS
        )
        hello = Hello(
            f"gpu-{index}",
            f"gpu-{index}-{self.restarts[index]}",
            total,
            shape.choice((1, 2, 4)),
            1,
            offers=offers,
        )
        chaos = self.scenario
        process = SimProver(hello, self.rng, self.later, lambda: None)
        process.changed = lambda: self.changed(index, process)
        if not self.healed:
            process.bad_proofs = 1.0 if index < chaos.liars else chaos.bad_proofs
            process.failures = chaos.failures
            process.hangs = chaos.hangs
        return process

    def kill_prover(self, index: int) -> None:
        process = self.provers[index]
        if not process.alive:
            return
        process.alive = False
        for link in list(self.links.values()):
            if link.process is process:
                self.cut(link.session)

        def restart() -> None:
            self.provers[index] = self._process(index)
            self.provers[index].highest_epoch = process.highest_epoch
            self.dial(index)

        self.later(self.rng.uniform(0.5, 40), restart)

    def cut_prover(self, index: int) -> None:
        for link in list(self.links.values()):
            if link.prover == index and link.up:
                self.cut(link.session)

    # --- clients ---------------------------------------------------------------------------

    def submit_some(self) -> None:
        rng = self.rng
        for _ in range(self.scenario.jobs):
            number = len(self.submissions)
            if number and rng.random() < 0.2:
                entry = replace(rng.choice(self.submissions), answered="")
            else:
                job = f"job-{number}"
                specs = tuple(spec(f"{job}/{i}") for i in range(rng.randint(1, 4)))
                entry = Submission(
                    job, f"r{number}", b"d", rng.choice(CIRCUITS), specs, rng.choice(list(Priority))
                )
            self.submissions.append(entry)
            at = rng.uniform(0, self.scenario.chaos_s * 0.7)
            self.later(at, partial(self.ask, number))

    def ask(self, number: int) -> None:
        """Submit until answered: a client retries an id across a scheduler's restart."""
        entry = self.submissions[number]
        if entry.answered:
            return
        self.do(
            ev.JobSubmitted(
                f"{entry.job_id}-{next(self.job_ids)}",
                entry.request_id,
                entry.digest,
                entry.circuit,
                "wtns",
                entry.specs,
                caller=number,
                priority=entry.priority,
            )
        )
        self.later(10, lambda: self.ask(number))

    def cancel_one(self) -> None:
        known = [s for s in self.submissions if s.answered]
        if known:
            chosen = self.rng.choice(known)
            chosen.cancelled = True
            self.do(ev.CancelRequested(chosen.answered, "sim"))

    # --- the story -------------------------------------------------------------------------

    def chaos(self) -> None:
        """Once a second something may go wrong, until the cluster heals."""
        rng, odds = self.rng, self.scenario
        if self.healed:
            return
        for index in range(len(self.provers)):
            if rng.random() < odds.kill_prover:
                self.kill_prover(index)
            if rng.random() < odds.pause_prover:
                self.paused[index] = self.now + int(rng.uniform(1, 50) * SECOND_NS)
            if rng.random() < odds.cut_stream:
                self.cut_prover(index)
        if rng.random() < odds.kill_scheduler:
            self.kill_scheduler()
        if rng.random() < odds.stop_store and self.store_up:
            self.store_up = False
            self.later(rng.uniform(1, 20), self._start_store)
        if rng.random() < odds.cancel:
            self.cancel_one()
        self.later(1, self.chaos)

    def _start_store(self) -> None:
        self.store_up = True

    def heal(self) -> None:
        self.healed = True
        self._start_store()
        for process in self.provers:
            process.bad_proofs = process.failures = process.hangs = 0.0

    def play(self, limit_s: float = 3_600) -> list[JobView]:
        """Run the whole story; return every job. Fails if one does not end in time."""
        self.boot()
        self.submit_some()
        self.chaos()
        self.run(lambda: False, self.scenario.chaos_s)
        self.heal()
        done = self.run(self.over, limit_s)
        assert done, f"seed {self.seed}: not over after {limit_s} s: {self.left()}"
        assert self.core is not None
        return self.core.jobs(limit=1_000)

    def over(self) -> bool:
        if self.core is None or not all(s.answered for s in self.submissions):
            return False
        fleet = self.core.fleet()
        return fleet.jobs_open == 0 and all(
            p.desired is not None and not p.desired.leases and p.actual and not p.actual.leases
            for p in fleet.provers
        )

    def left(self) -> list[str]:
        if self.core is None:
            return ["scheduler down"]
        return [
            f"{job.job_id}/{part.index} {part.state.name} {part.prover_id} {part.waiting_for}"
            for job in self.core.jobs(limit=1_000)
            if job.outcome is None
            for part in self.core.partitions(job.job_id)
        ]
