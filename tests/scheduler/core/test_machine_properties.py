"""A Hypothesis state machine: any order of events leaves every invariant true.

`World` calls `check()` after each step. Provers here need not be timely, healthy or even
sensible about when they take Desired in; they only never list what they were not given.
At the end everything heals, and every job must end.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from partita.scheduler.core import effects as fx
from partita.scheduler.core import events as ev
from partita.scheduler.core.config import CoreConfig
from partita.scheduler.core.machine import SchedulerCore
from partita.scheduler.core.model import (
    Condition,
    FailureKind,
    Mode,
    Phase,
    Priority,
    Residency,
    Trust,
    Verdict,
)
from partita.scheduler.core.views import PublicState
from tests.scheduler.core.world import Peer, World, manifest, offer

OPEN = (PublicState.QUEUED, PublicState.RUNNING)
PHASES = [p for p in Phase if p not in (Phase.UNSPECIFIED, Phase.FINISHED)]
peers = st.integers(0, 2)
numbers = st.integers(0, 99)


class SchedulerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World("a", "b", config=CoreConfig(quarantine_debits=2))
        self.world.auto_verify = False
        self.checks: list[fx.VerifyProof] = []
        self.n_jobs = 0
        self.peers = [
            Peer(self.world, "p0", offer("a", 2, 3), offer("b", 2, 3), total_gib=8, slots=2),
            Peer(self.world, "p1", offer("a", 5, 3), offer("b", 5, 3), total_gib=9, slots=3),
            Peer(self.world, "p2", offer("a", 1, 1), total_gib=4, slots=1, express=0),
        ]
        self.up = [False] * 3

    def _alive(self, index: int) -> Peer | None:
        """Return the peer if the scheduler has not closed its stream meanwhile."""
        peer = self.peers[index]
        if any(number == peer.session for number, _ in self.world.closed):
            self.up[index] = False
        return peer if self.up[index] else None

    def _collect(self) -> None:
        self.checks += self.world.verifications()
        self.world.effects.clear()

    @initialize(connected=st.booleans(), trust=st.sampled_from(Trust))
    def begin(self, connected: bool, trust: Trust) -> None:
        """Begin with nobody there, or with a whole fleet, its first prover trusted or not."""
        if connected:
            self.change_trust(0, trust)
            for index in range(3):
                self.connect(index)

    @rule(
        n=st.integers(1, 4),
        circuit=st.sampled_from("ab"),
        priority=st.sampled_from(Priority),
        request=st.sampled_from(["", "r", "s"]),
    )
    def submit(self, n: int, circuit: str, priority: Priority, request: str) -> None:
        self.n_jobs += 1
        self.world.submit(f"j{self.n_jobs}", n, circuit, priority, request)
        self._collect()

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        self.world.do(ev.CancelRequested(f"j{number % (self.n_jobs + 1)}", "h"))

    @rule(index=peers)
    def connect(self, index: int) -> None:
        if self._alive(index) is None:
            self.peers[index].connect()
            self.up[index] = True
            self._collect()

    @rule(index=peers)
    def reconnect_over_the_old_stream(self, index: int) -> None:
        self.peers[index].connect()
        self.up[index] = True
        self._collect()

    @rule(index=peers, how=st.sampled_from(["hang_up", "die"]))
    def disconnect(self, index: int, how: str) -> None:
        peer = self._alive(index)
        if peer is not None:
            getattr(peer, how)()
            self.up[index] = False

    @rule(index=peers)
    def take_in_and_report(self, index: int) -> None:
        peer = self._alive(index)
        if peer is not None:
            peer.sync()
            self._collect()

    @rule(index=peers)
    def report_only(self, index: int) -> None:
        peer = self._alive(index)
        if peer is not None:
            peer.report()
            self._collect()

    @rule(index=peers, number=numbers, phase=st.sampled_from(PHASES))
    def enter_phase(self, index: int, number: int, phase: Phase) -> None:
        peer = self._alive(index)
        if peer is not None and peer.leases:
            lease_id = sorted(peer.leases)[number % len(peer.leases)]
            if peer.leases[lease_id].outcome is None:
                peer.phase(lease_id, phase)
                self._collect()

    @rule(index=peers, number=numbers, good=st.booleans())
    def prove(self, index: int, number: int, good: bool) -> None:
        peer = self._alive(index)
        if peer is not None and peer.leases:
            lease_id = sorted(peer.leases)[number % len(peer.leases)]
            if peer.leases[lease_id].outcome is None:
                peer.prove(lease_id, good=good)
                self._collect()

    @rule(index=peers, number=numbers, kind=st.sampled_from(FailureKind))
    def fail(self, index: int, number: int, kind: FailureKind) -> None:
        peer = self._alive(index)
        if peer is not None and peer.leases:
            lease_id = sorted(peer.leases)[number % len(peer.leases)]
            if peer.leases[lease_id].outcome is None:
                peer.fail(lease_id, kind)
                self._collect()

    @rule(index=peers, condition=st.sampled_from([Condition.READY, Condition.DRAINING]))
    def change_condition(self, index: int, condition: Condition) -> None:
        self.peers[index].condition = condition

    @rule(index=peers, mode=st.sampled_from(Mode))
    def change_mode(self, index: int, mode: Mode) -> None:
        self.world.do(ev.ModeSet(f"p{index}", mode))

    @rule(index=peers, trust=st.sampled_from(Trust))
    def change_trust(self, index: int, trust: Trust) -> None:
        self.world.do(ev.TrustSet(f"p{index}", trust))

    @rule(number=numbers)
    def retry(self, number: int) -> None:
        self.n_jobs += 1
        self.world.retry(f"j{number % self.n_jobs}", f"j{self.n_jobs}")
        self._collect()

    @rule(
        circuit=st.sampled_from("ab"),
        prover_id=st.sampled_from(["", "p0", "p1", "p2"]),
        wish=st.sampled_from(Residency),
    )
    def set_residency(self, circuit: str, prover_id: str, wish: Residency) -> None:
        self.world.do(ev.ResidencySet(manifest(circuit), prover_id, wish))

    @invariant()
    def on_probation_there_is_one_lease_at_most_and_quarantine_grants_none(self) -> None:
        for grant in self.world.granted:
            assert grant.trust is not Trust.QUARANTINED
            if grant.trust is Trust.PROBATION:
                assert grant.priority is not Priority.CRITICAL
                assert grant.others == 0
        self.world.granted.clear()

    @precondition(lambda self: self.checks)
    @rule(number=numbers, broken=st.booleans())
    def answer_a_check(self, number: int, broken: bool) -> None:
        check = self.checks.pop(number % len(self.checks))
        good = check.proof == b"proof of " + check.statement
        verdict = Verdict.VALID if good else Verdict.INVALID
        self.world.verdict(check, Verdict.UNCHECKED if broken else verdict)
        self._collect()

    @rule(seconds=st.sampled_from([0.0, 0.5, 1, 5, 21, 31, 61, 301]))
    def wait(self, seconds: float) -> None:
        self.world.run(seconds)
        self._collect()

    @rule()
    def stall(self) -> None:
        self.world.now += 10**12
        self.world._after(self.world.core.tick(self.world.now))
        self._collect()

    @rule()
    def stop_the_store(self) -> None:
        self.world.store_up = False

    @rule()
    def start_the_store(self) -> None:
        self.world.store_up = True
        self.world.save()
        self._collect()

    @rule()
    def kill_the_scheduler(self) -> None:
        self.world.boot()
        self.up = [False] * 3
        self.checks = []
        self._collect()

    @rule()
    def go_on_from_a_snapshot(self) -> None:
        before = self.world.core.digest()
        self.world.core = SchedulerCore.restore(self.world.core.snapshot())
        assert self.world.core.digest() == before

    def teardown(self) -> None:
        """Everything heals: every job must end, and nothing be left over."""
        world = self.world
        self.start_the_store()
        for index, peer in enumerate(self.peers):
            peer.condition = Condition.READY
            self.change_mode(index, Mode.ACTIVE)
            self.change_trust(index, Trust.TRUSTED)
        for circuit in "ab":
            self.set_residency(circuit, "", Residency.AUTO)
        for _ in range(200):
            for check in self.checks:
                good = check.proof == b"proof of " + check.statement
                world.verdict(check, Verdict.VALID if good else Verdict.INVALID)
            self.checks = []
            for index, peer in enumerate(self.peers):
                self.connect(index)
                peer.sync()
                for lease_id in [i for i, h in peer.leases.items() if h.outcome is None]:
                    peer.prove(lease_id)
                self._collect()
            if not any(job.state in OPEN for job in world.core.jobs(limit=1_000)):
                break
            world.run(5)
            self._collect()
        left = [job.job_id for job in world.core.jobs(limit=1_000) if job.state in OPEN]
        assert not left, f"never end: {left}"


SchedulerMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestSchedulerMachine = SchedulerMachine.TestCase
