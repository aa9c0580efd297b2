"""The prover's core under any order of events: invariants after every step, and liveness."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import (
    NOTHING,
    BlobRef,
    Bytes,
    CoreConfig,
    Desired,
    Failure,
    FailureKind,
    LeaseOrder,
    Phase,
    Priority,
)
from partita.prover.core.pipeline import PipelineCore

TOTAL = Bytes(100)
KEYS = {bytes([n]) * 32: Bytes(20 + n) for n in range(3)}
THREADS = 2


@dataclass
class Shell:
    """What a shell that keeps its contract has under way."""

    stages: dict[str, str] = field(default_factory=dict)
    orders: dict[str, LeaseOrder] = field(default_factory=dict)
    stops: set[str] = field(default_factory=set)
    frees: set[str] = field(default_factory=set)
    loads: dict[bytes, Bytes] = field(default_factory=dict)
    unloads: set[bytes] = field(default_factory=set)
    mapped: dict[str, Bytes] = field(default_factory=dict)
    resident: set[bytes] = field(default_factory=set)
    device: str = ""
    exited: bool = False

    def take(self, effects: list[fx.Effect]) -> None:
        for effect in effects:
            match effect:
                case fx.FetchInput(order):
                    assert order.lease_id not in self.mapped
                    self.stages[order.lease_id] = "fetch"
                    self.mapped[order.lease_id] = order.reserved
                    self.orders[order.lease_id] = order
                case fx.Synthesize(order, express):
                    assert order.manifest_sha256 in self.resident
                    assert not express or order.priority is Priority.CRITICAL
                    self._start(order, "synthesis")
                case fx.Prove(order):
                    assert not self.device, "the device is taken twice"
                    assert order.manifest_sha256 in self.resident
                    self.device = order.lease_id
                    self._start(order, "device")
                case fx.StopStage(lease_id):
                    assert lease_id in self.stages
                    self.stops.add(lease_id)
                case fx.FreeLease(lease_id):
                    assert lease_id not in self.stages, "freed under a running stage"
                    self.frees.add(lease_id)
                case fx.LoadKey(manifest, limit):
                    assert manifest not in self.resident | self.unloads
                    self.loads[manifest] = limit
                case fx.UnloadKey(manifest):
                    users = [x for x in self.mapped if self.orders[x].manifest_sha256 == manifest]
                    assert not users, "a key in use is unloaded"
                    self.resident.discard(manifest)
                    self.unloads.add(manifest)
                case fx.Exit():
                    assert not self.exited
                    self.exited = True
                case fx.SendActual():
                    pass

    def _start(self, order: LeaseOrder, stage: str) -> None:
        assert order.lease_id not in self.stages
        self.stages[order.lease_id] = stage

    def end_stage(self, lease_id: str) -> None:
        del self.stages[lease_id]
        self.stops.discard(lease_id)
        if self.device == lease_id:
            self.device = ""


class PipelineMachine(RuleBasedStateMachine):
    """Random peers, clocks and stage results."""

    def __init__(self) -> None:
        super().__init__()
        config = CoreConfig(TOTAL, THREADS, grace_ns=50, fault_grace_ns=10, orphan_ttl_ns=30)
        self.core = PipelineCore(config)
        self.shell = Shell()
        self.now_ns = 0
        self.revision = 0
        self.linked = False
        self.faulted = False
        self.desired: dict[str, LeaseOrder] = {}
        self.counter = 0

    def do(self, event: ev.Event) -> None:
        self.shell.take(self.core.handle(event, self.now_ns))

    @initialize()
    def offer(self) -> None:
        self.do(ev.OffersChanged(KEYS))

    @rule()
    def link(self) -> None:
        self.linked = not self.linked
        self.revision = 0
        self.do(ev.LinkUp() if self.linked else ev.LinkDown())

    @precondition(lambda self: self.linked)
    @rule(data=st.data())
    def desire(self, data: st.DataObject) -> None:
        kept = [x for x in self.desired.values() if data.draw(st.booleans())]
        for _ in range(data.draw(st.integers(0, 3))):
            self.counter += 1
            kept.append(
                LeaseOrder(
                    lease_id=f"1.{self.counter}",
                    job_id="job",
                    partition_index=0,
                    attempt=1,
                    circuit_id="c",
                    manifest_sha256=data.draw(st.sampled_from(sorted(KEYS))),
                    input=BlobRef(b"i" * 32, 1),
                    input_format="wtns",
                    priority=data.draw(st.sampled_from(list(Priority))),
                    job_seq=data.draw(st.integers(1, 5)),
                    reserved=Bytes(data.draw(st.integers(1, 30))),
                )
            )
        self.desired = {x.lease_id: x for x in kept}
        keys = {x.manifest_sha256 for x in kept} | data.draw(st.sets(st.sampled_from(sorted(KEYS))))
        self.revision += 1
        drain = data.draw(st.integers(0, 5)) == 0
        self.do(
            ev.DesiredReceived(Desired(1, self.revision, tuple(kept), tuple(sorted(keys)), drain))
        )

    @precondition(lambda self: self.shell.stages)
    @rule(data=st.data())
    def end_a_stage(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.shell.stages)))
        stage = self.shell.stages[lease_id]
        ways = ["done", "fail"] + (["stop"] if lease_id in self.shell.stops else [])
        way = data.draw(st.sampled_from(ways))
        if stage == "device" and data.draw(st.booleans()):
            self.do(ev.Released(lease_id, Bytes(data.draw(st.integers(0, 30)))))
            if data.draw(st.booleans()) and self.shell.device == lease_id:
                self.shell.device = ""
                self.do(ev.DeviceDone(lease_id))
        self.shell.end_stage(lease_id)
        if way == "stop":
            self.do(ev.StageStopped(lease_id))
        elif way == "fail":
            self.do(ev.StageFailed(lease_id, Failure(FailureKind.COMPUTE, "X")))
        elif stage == "fetch":
            self.do(ev.InputFetched(lease_id))
        elif stage == "synthesis":
            self.do(ev.Synthesized(lease_id, b"s", b"d" * 32))
        else:
            self.do(ev.Proved(lease_id, b"p", NOTHING))

    @precondition(lambda self: self.shell.frees)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.shell.frees)))
        self.shell.frees.discard(lease_id)
        del self.shell.mapped[lease_id]
        self.do(ev.LeaseFreed(lease_id))

    @precondition(lambda self: self.shell.loads)
    @rule(data=st.data(), good=st.integers(0, 4))
    def end_a_load(self, data: st.DataObject, good: int) -> None:
        manifest = data.draw(st.sampled_from(sorted(self.shell.loads)))
        limit = self.shell.loads.pop(manifest)
        if good:
            self.shell.resident.add(manifest)
            self.do(ev.KeyLoaded(manifest, limit))
        else:
            self.do(ev.KeyFailed(manifest, "broken"))

    @precondition(lambda self: self.shell.unloads)
    @rule(data=st.data())
    def end_an_unload(self, data: st.DataObject) -> None:
        manifest = data.draw(st.sampled_from(sorted(self.shell.unloads)))
        self.shell.unloads.discard(manifest)
        self.do(ev.KeyUnloaded(manifest))

    @rule(step_ns=st.integers(1, 20))
    def wait(self, step_ns: int) -> None:
        self.now_ns += step_ns
        deadline = self.core.next_deadline_ns()
        self.shell.take(self.core.tick(self.now_ns))
        if deadline is not None and deadline <= self.now_ns:
            later = self.core.next_deadline_ns()
            assert later is None or later > self.now_ns, "a deadline stays although it has passed"

    @rule(dice=st.integers(0, 20))
    def stop_or_fault(self, dice: int) -> None:
        if dice == 0:
            self.do(ev.Stopping())
        elif dice == 1:
            self.faulted = True
            self.do(ev.Faulted("illegal address"))

    @invariant()
    def the_core_is_consistent(self) -> None:
        self.core.check()

    @invariant()
    def what_is_mapped_is_listed_with_its_bytes(self) -> None:
        listed = {x.lease_id: x for x in self.core.actual().leases}
        assert set(self.shell.mapped) <= set(listed)
        keys = {x.manifest_sha256: x for x in self.core.actual().keys}
        for manifest in self.shell.resident | self.shell.unloads | set(self.shell.loads):
            assert keys[manifest].held == KEYS[manifest]

    @invariant()
    def nothing_waits_while_it_could_run(self) -> None:
        phases = [x.phase for x in self.core.actual().leases]
        if not self.shell.device:
            assert Phase.WAITING_FOR_DEVICE not in phases
        synthesis = [x for x in self.shell.stages.values() if x == "synthesis"]
        if len(synthesis) < THREADS:
            assert Phase.WAITING_FOR_SYNTHESIS not in phases

    def teardown(self) -> None:
        """An honest shell that answers everything brings every lease to its end."""
        for _ in range(2000):
            if self.shell.frees:
                lease_id = self.shell.frees.pop()
                del self.shell.mapped[lease_id]
                self.do(ev.LeaseFreed(lease_id))
            elif self.shell.unloads:
                self.do(ev.KeyUnloaded(self.shell.unloads.pop()))
            elif self.shell.loads:
                manifest, limit = self.shell.loads.popitem()
                self.shell.resident.add(manifest)
                self.do(ev.KeyLoaded(manifest, limit))
            elif self.shell.stages:
                lease_id, stage = next(iter(self.shell.stages.items()))
                self.shell.end_stage(lease_id)
                if lease_id in self.shell.stops:
                    self.do(ev.StageStopped(lease_id))
                elif stage == "fetch":
                    self.do(ev.InputFetched(lease_id))
                elif stage == "synthesis":
                    self.do(ev.Synthesized(lease_id, b"s", b"d" * 32))
                else:
                    self.do(ev.Proved(lease_id, b"p", NOTHING))
            else:
                break
            self.core.check()
        waiting_for_key = {x.manifest_sha256 for x in self.core.actual().keys if not x.held.host}
        for lease in self.core.actual().leases:
            if lease.phase is Phase.FETCHING:
                manifest = self.shell.orders[lease.lease_id].manifest_sha256
                assert manifest in waiting_for_key, f"{lease} is stuck"
            else:
                assert lease.phase is Phase.FINISHED, f"{lease} is stuck"


PipelineMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPipelineMachine = PipelineMachine.TestCase
