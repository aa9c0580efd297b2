"""The link against a peer on loopback: greetings, reconnects, mailboxes of one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import structlog.testing

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import NOTHING, Bytes, CoreConfig
from partita.prover.core.pipeline import PipelineCore
from partita.prover.engine import Engine
from partita.prover.link import Link, LinkConfig
from partita.service.clock import Clock
from partita.v1 import dispatch_pb2, types_pb2
from tests.prover.peer import TIMEOUT_S, Peer, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = b"k" * 32
MIB = 1 << 20


def lease(lease_id: str, **fields: object) -> dispatch_pb2.Lease:
    message = dispatch_pb2.Lease(
        lease_id=lease_id,
        job_id="job",
        attempt=1,
        circuit_id="c",
        manifest_sha256=KEY,
        input=types_pb2.BlobRef(sha256=b"i" * 32, size_bytes=1),
        input_format="wtns",
        reserved=types_pb2.Bytes(host=MIB),
    )
    message.MergeFrom(dispatch_pb2.Lease(**fields))  # type: ignore[arg-type]
    return message


class Rig:
    """A link, its engine and core; effects are recorded for the test to answer."""

    def __init__(self, *addresses: str, **times: float) -> None:
        core = PipelineCore(CoreConfig(total=Bytes(100 * MIB)))
        self.engine = Engine(core, Clock().now_ns, check=True)
        self.effects: list[fx.Effect] = []
        self.revisions: list[bytes] = []
        self.labels = {"n": "0"}
        self.link = Link(
            LinkConfig(addresses, 0.001, 0.01, 0.01, **times),
            hello=lambda: dispatch_pb2.Hello(
                prover_id="p", instance_id="i", max_leases=3, labels=self.labels
            ),
            actual=self.engine.actual,
            measured=lambda: 7,
            post=self.engine.post,
            catalogue=self.revisions.append,
        )
        self.engine.connect(
            self.effects.append, lambda urgent: self.link.send_actual(urgent=urgent)
        )
        self.engine.post(ev.OffersChanged({KEY: Bytes(MIB)}))

    def prove(self, lease_id: str) -> None:
        """Bring a lease to its proof."""
        self.engine.post(ev.InputFetched(lease_id))
        self.engine.post(ev.KeyLoaded(KEY, Bytes(MIB)))
        self.engine.post(ev.Synthesized(lease_id, b"", b""))
        self.engine.post(ev.Proved(lease_id, b"proof", NOTHING))
        self.engine.post(ev.LeaseFreed(lease_id))


@asynccontextmanager
async def rig_on(*peers: Peer, **times: float) -> AsyncIterator[Rig]:
    rig = Rig(*(peer.address for peer in peers), **times)
    task = asyncio.create_task(rig.link.run())
    try:
        yield rig
    finally:
        rig.link.close()
        async with asyncio.timeout(TIMEOUT_S):
            await task


async def test_the_first_message_is_hello_and_the_second_a_full_actual() -> None:
    async with serving() as peer, rig_on(peer):
        session = await peer.session()
        await session.until(lambda s: len(s.received) >= 2)
        hello, actual = session.received[0], session.received[1]
        assert hello.hello.prover_id == "p"
        assert hello.hello.contract_min <= 1 <= hello.hello.contract_max
        assert actual.WhichOneof("message") == "actual"
        assert actual.actual.applied == 0
        assert actual.actual.measured.host == 7


async def test_a_desired_is_taken_in_and_its_revision_applied() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome(revision=b"r" * 32)
        revision = session.desire(lease("1.1"))
        held = await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FETCHING)
        assert held.held.host == MIB
        assert session.actuals[-1].applied == revision
        assert [x.order.lease_id for x in rig.effects if isinstance(x, fx.FetchInput)] == ["1.1"]
        assert rig.revisions[0] == b"r" * 32


async def test_a_reconnect_resumes_with_leases_and_outcomes() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"), lease("1.2", partition_index=1))
        await session.lease("1.2", lambda x: x.phase == types_pb2.PHASE_FETCHING)
        session.end()
        rig.prove("1.1")
        again = await peer.session()
        await again.until(lambda s: s.actuals)
        first = again.actuals[0]
        assert first.applied == 0
        shown = {x.lease_id: x for x in first.leases}
        assert shown["1.1"].proved.proof == b"proof"
        assert shown["1.2"].phase == types_pb2.PHASE_FETCHING
        assert sum(isinstance(x, fx.FetchInput) for x in rig.effects) == 2


async def test_an_outcome_goes_until_its_lease_has_left_desired() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        rig.prove("1.1")
        await session.lease("1.1", lambda x: x.WhichOneof("outcome") == "proved")
        revision = session.desire(keys=(KEY,))
        actual = await session.actual(lambda a: a.applied == revision)
        assert not actual.leases


async def test_a_removed_lease_is_stopped_and_then_forgotten() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        revision = session.desire(keys=(KEY,))
        held = await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_STOPPING)
        assert held.held.host == MIB
        assert session.actuals[-1].applied == revision
        assert fx.StopStage("1.1") in rig.effects
        rig.engine.post(ev.StageStopped("1.1"))
        rig.engine.post(ev.LeaseFreed("1.1"))
        await session.actual(lambda a: not a.leases)


async def test_a_scheduler_of_a_lower_epoch_is_left_for_the_next_address() -> None:
    async with serving() as old, serving() as new, rig_on(new, old) as rig:
        session = await new.session()
        session.welcome(epoch=7)
        session.desire(lease("1.1"), epoch=7)
        await session.lease("1.1", lambda x: True)
        session.end()
        stale = await old.session()
        await stale.until(lambda s: s.hellos)
        assert stale.hellos[0].highest_epoch == 7
        stale.welcome(epoch=6)
        async with asyncio.timeout(TIMEOUT_S):
            await stale.ended.wait()
        assert rig.engine.actual().leases
        back = await new.session()
        back.welcome(epoch=7)
        await back.until(lambda s: s.actuals)
        assert [x.lease_id for x in back.actuals[0].leases] == ["1.1"]


async def test_a_desired_of_a_lower_epoch_ends_the_stream_and_changes_nothing() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome(epoch=7)
        session.desire(lease("1.1"), epoch=7)
        await session.lease("1.1", lambda x: True)
        session.desire(epoch=6)
        async with asyncio.timeout(TIMEOUT_S):
            await session.ended.wait()
        assert [x.lease_id for x in rig.engine.actual().leases] == ["1.1"]


async def test_many_changes_are_one_actual_and_the_last_one_wins() -> None:
    async with serving() as peer, rig_on(peer, coalesce_s=3600.0) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        before = len(session.actuals)
        for permille in range(1, 1001):
            rig.engine.post(ev.Progressed("1.1", permille))
            await asyncio.sleep(0)
        rig.engine.post(ev.Faulted("an urgent change"))
        await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_FAULTED)
        assert len(session.actuals) == before + 1


async def test_progress_goes_once_the_coalescing_is_over() -> None:
    async with serving() as peer, rig_on(peer, coalesce_s=0.01, beat_s=3600.0) as rig:
        session = await peer.session()
        session.welcome(beat_s=3600)
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        rig.engine.post(ev.Progressed("1.1", 1))
        rig.engine.post(ev.Progressed("1.1", 1000))
        await session.lease("1.1", lambda x: x.permille == 1000)


async def test_a_phase_change_goes_at_once_and_progress_waits() -> None:
    async with serving() as peer, rig_on(peer, coalesce_s=3600.0) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        before = len(session.actuals)
        rig.engine.post(ev.Progressed("1.1", 1))
        rig.link.send_hello()
        await session.until(lambda s: len(s.hellos) == 2)
        assert len(session.actuals) == before
        rig.prove("1.1")
        await session.lease("1.1", lambda x: x.WhichOneof("outcome") == "proved")
        assert len(session.actuals) == before + 1


async def test_changed_offers_go_as_a_new_hello_on_the_same_stream() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome()
        await session.until(lambda s: s.actuals)
        rig.labels = {"n": "1"}
        rig.link.send_hello()
        await session.until(lambda s: len(s.hellos) == 2)
        assert session.hellos[1].labels["n"] == "1"


async def test_a_beat_sends_an_actual_although_nothing_changed() -> None:
    async with serving() as peer, rig_on(peer, beat_s=0.01):
        session = await peer.session()
        session.welcome(beat_s=0)
        await session.until(lambda s: len(s.actuals) >= 4)


async def test_between_hello_and_welcome_nothing_goes_but_one_actual() -> None:
    async with serving() as peer, rig_on(peer, beat_s=0.001, coalesce_s=0.0) as rig:
        session = await peer.session()
        await session.until(lambda s: s.actuals)
        for _ in range(50):
            rig.link.send_actual(urgent=True)
            rig.link.send_hello()
            await asyncio.sleep(0)
        rig.labels = {"n": "newest"}
        session.welcome(beat_s=3600)
        await session.until(lambda s: len(s.hellos) == 2)
        await session.until(lambda s: len(s.actuals) == 2)
        assert [x.WhichOneof("message") for x in session.received] == [
            "hello",
            "actual",
            "hello",
            "actual",
        ]
        assert session.hellos[-1].labels["n"] == "newest"


async def test_an_internal_error_of_the_stream_is_a_lost_link_like_any_other() -> None:
    with structlog.testing.capture_logs() as lost:
        async with serving() as peer, rig_on(peer):
            for code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE):
                session = await peer.session()
                await session.until(lambda s: s.actuals)
                session.fail(code)
            session = await peer.session()
            session.welcome()
            session.desire(lease("1.1"))
            await session.lease("1.1", lambda x: True)
    told = [(x["code"], x["log_level"]) for x in lost if x["event"] == "link.lost"]
    assert told == [("INTERNAL", "warning"), ("UNAVAILABLE", "warning")]


async def test_closing_sends_the_newest_actual_and_half_closes() -> None:
    async with serving() as peer, rig_on(peer) as rig:
        session = await peer.session()
        session.welcome()
        session.desire(lease("1.1"))
        await session.lease("1.1", lambda x: True)
        rig.prove("1.1")
        rig.link.close()
        async with asyncio.timeout(TIMEOUT_S):
            await session.ended.wait()
        assert session.half_closed
        assert session.actuals[-1].leases[0].WhichOneof("outcome") == "proved"
