"""A whole prover in this process against a peer: circuits come, partitions are proved."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING

import grpc
import partita_native
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from partita.circuits.catalogue import Catalogue
from partita.circuits.wtns import statement_of_wtns
from partita.groth16 import native
from partita.groth16.native import NativeBackend
from partita.groth16.reference import ReferenceBackend
from partita.prover import circuits
from partita.prover.app import Prover
from partita.v1 import dispatch_pb2, prover_pb2, prover_pb2_grpc, types_pb2
from tests.prover.circuits_on_disk import (
    ONE_CONSTRAINT,
    POWER_OF_TWO,
    add,
    add_with_broken_point,
    lease_of,
)
from tests.prover.peer import TIMEOUT_S, serving
from tests.prover.whole import (
    GatedBackend,
    config_of,
    offered,
    outcome,
    prover_on,
    proves,
    run_file,
    statement_of,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from partita.groth16.backend import Backend


@pytest.mark.parametrize("backend", [NativeBackend(), ReferenceBackend()], ids=lambda b: b.name)
async def test_a_partition_goes_from_its_witness_to_a_proof_that_verifies(
    tmp_path: Path, backend: Backend
) -> None:
    entry = add(tmp_path / "theirs", POWER_OF_TWO, wasm=True)
    statement = statement_of(POWER_OF_TWO)
    async with serving() as peer, prover_on(peer, tmp_path / "mine", backend):
        session = await offered(peer, tmp_path / "theirs")
        (offer,) = session.hellos[-1].offers
        assert not offer.unusable_reason
        assert list(offer.input_formats) == ["circom.json", "wtns"]
        data = (POWER_OF_TWO / "witness.wtns").read_bytes()
        digest = hashlib.sha256(statement).digest()
        session.desire(lease_of(entry, data, statement_sha256=digest))
        held = await outcome(session)
        assert verified(entry, POWER_OF_TWO, statement, held.proved.proof)
        assert held.proved.statement == b""
        assert len(data) <= held.proved.peak.host <= offer.peak.host
        assert held.held.host == 0
        (key,) = session.actuals[-1].keys
        assert key.state == dispatch_pb2.HeldKey.STATE_READY
        assert 0 < key.held.host <= offer.key.host
        assert key.references == 0


async def test_a_circom_input_is_downloaded_and_the_statement_returned(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", POWER_OF_TWO, wasm=True)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        data = (POWER_OF_TWO / "input.json").read_bytes()
        peer.put(data)
        session.desire(lease_of(entry, data, inline=b"", input_format="circom.json"))
        held = await outcome(session)
        assert held.proved.statement == statement_of(POWER_OF_TWO)
        assert verified(entry, POWER_OF_TWO, held.proved.statement, held.proved.proof)


async def test_files_that_lie_in_the_own_catalogue_are_not_downloaded(tmp_path: Path) -> None:
    add(tmp_path / "circuits", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path):
        session = await offered(peer, tmp_path / "circuits")
        assert not session.hellos[-1].offers[0].unusable_reason
        assert peer.downloads == []


async def test_a_new_catalogue_revision_in_desired_brings_new_offers(tmp_path: Path) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        add(tmp_path / "theirs", POWER_OF_TWO)
        session.desire(catalogue_revision=peer.add_catalogue(tmp_path / "theirs"))
        await session.until(lambda s: s.hellos and len(s.hellos[-1].offers) == 2)
        assert not any(x.unusable_reason for x in session.hellos[-1].offers)


@pytest.mark.parametrize("why", ["SHA-256", "the scheduler does not serve it"])
async def test_a_circuit_with_a_damaged_or_lost_file_is_offered_with_the_reason(
    tmp_path: Path, why: str
) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    add(tmp_path / "theirs", POWER_OF_TWO)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        revision = peer.add_catalogue(tmp_path / "theirs")
        damaged = next(x for x in peer.circuits if x.circuit_id == ONE_CONSTRAINT.name)
        zkey = next(x.blob.sha256 for x in damaged.files if x.role == "zkey")
        whole = peer.blobs.pop(zkey)
        if why == "SHA-256":
            peer.blobs[zkey] = whole[:-1] + b"\0"
        session = await peer.session()
        session.welcome(revision=revision)
        await session.until(lambda s: s.hellos and len(s.hellos[-1].offers) == 2)
        reasons = {x.circuit_id: x.unusable_reason for x in session.hellos[-1].offers}
        assert why in reasons[ONE_CONSTRAINT.name]
        assert reasons[POWER_OF_TWO.name] == ""


async def test_a_catalogue_that_cannot_be_read_makes_circuits_unusable_and_no_more(
    tmp_path: Path,
) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "circuits").touch()
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        assert "Not a directory" in session.hellos[-1].offers[0].unusable_reason


def test_the_wait_for_a_missing_file_doubles_up_to_a_quarter_of_an_hour_and_stays() -> None:
    waits_s = [circuits.wait_s(tries) for tries in (0, 1, 2, 5, 6, 1_000_000)]
    assert waits_s == [30, 60, 120, 900, 900, 900]


async def test_a_file_that_stays_wrong_at_the_scheduler_is_asked_for_ever_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits, "_RECHECK_S", 0.05)
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    digest = hashlib.sha256(entry.file("zkey").read_bytes()).digest()
    async with serving() as peer:
        revision = peer.add_catalogue(tmp_path / "theirs")
        peer.blobs[digest] = b"another file"
        async with prover_on(peer, tmp_path / "mine"):
            (await peer.session()).welcome(revision=revision)
            begun_s = asyncio.get_running_loop().time()
            while peer.downloads.count(digest) < 5:
                async with asyncio.timeout(TIMEOUT_S):
                    await peer.asked.wait()
                peer.asked.clear()
            # The other files come with the first try, which makes the second one a first again.
            waits_s = [0.05 * times for times in (1, 1, 2, 4)]
            assert asyncio.get_running_loop().time() - begun_s >= sum(waits_s)


@pytest.mark.parametrize("where", ["here", "at the scheduler"])
async def test_a_circuit_whose_file_is_put_back_is_offered_without_another_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(circuits, "_RECHECK_S", 0.02)
    entry = add(tmp_path / "circuits", ONE_CONSTRAINT)
    zkey = entry.file("zkey")
    whole = zkey.read_bytes()
    digest = hashlib.sha256(whole).digest()
    async with serving() as peer:
        revision = peer.add_catalogue(tmp_path / "circuits")
        if where == "here":
            zkey.write_bytes(whole[:-1] + b"\x5a")
        else:
            del peer.blobs[digest]
        async with prover_on(peer, tmp_path if where == "here" else tmp_path / "mine"):
            session = await peer.session()
            session.welcome(revision=revision)
            await session.until(lambda s: s.hellos and s.hellos[-1].offers)
            assert session.hellos[-1].offers[0].unusable_reason
            if where == "here":
                zkey.write_bytes(whole)
            else:
                peer.blobs[digest] = whole
            await session.until(lambda s: not s.hellos[-1].offers[0].unusable_reason)


async def test_a_key_that_was_altered_on_the_disk_is_failed_with_the_reason(tmp_path: Path) -> None:
    entry = add(tmp_path / "circuits", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path):
        session = await offered(peer, tmp_path / "circuits")
        zkey = entry.file("zkey")
        zkey.write_bytes(zkey.read_bytes()[:-1] + b"\x5a")
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        session.desire(lease_of(entry, data))
        held = await outcome(session)
        assert held.failure.kind == types_pb2.FAILURE_KIND_INTERNAL
        assert held.failure.reason == "KEY_FAILED"
        (key,) = session.actuals[-1].keys
        assert key.state == dispatch_pb2.HeldKey.STATE_FAILED
        assert "was altered" in key.reason
        assert re.search(r"\(build .+\)$", key.reason)
        assert key.held.host == 0


async def test_a_key_with_a_point_off_the_curve_is_failed_and_names_it(tmp_path: Path) -> None:
    entry = add_with_broken_point(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        session.desire(keys=(entry.manifest_sha256,))
        failed = dispatch_pb2.HeldKey.STATE_FAILED
        actual = await session.actual(lambda a: a.keys and a.keys[0].state == failed)
        assert "query a[0]" in actual.keys[0].reason


@pytest.mark.parametrize("rows_always", [True, False], ids=["small", "diagnose"])
async def test_a_witness_that_does_not_fit_is_told_its_row(
    tmp_path: Path, rows_always: bool
) -> None:
    entry = add(tmp_path / "theirs", POWER_OF_TWO)
    below = 1 << 18 if rows_always else 0
    async with (
        serving() as peer,
        prover_on(peer, tmp_path / "mine", check_rows_below=below),
    ):
        session = await offered(peer, tmp_path / "theirs")
        data = (POWER_OF_TWO / "unsatisfied.wtns").read_bytes()
        session.desire(lease_of(entry, data, diagnose=not rows_always))
        held = await outcome(session)
        assert held.failure.kind == types_pb2.FAILURE_KIND_INVALID_INPUT
        assert held.failure.reason == "UNSATISFIED"
        assert "row" in held.failure.detail


async def test_rows_are_not_checked_for_a_large_circuit_without_diagnose(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", POWER_OF_TWO)
    async with serving() as peer, prover_on(peer, tmp_path / "mine", check_rows_below=0):
        session = await offered(peer, tmp_path / "theirs")
        data = (POWER_OF_TWO / "unsatisfied.wtns").read_bytes()
        session.desire(lease_of(entry, data))
        held = await outcome(session)
        statement = statement_of_wtns(
            "w",
            data,
            curve="bn254",
            n_wires=entry.manifest.n_wires,
            n_public=entry.manifest.n_public,
        )
        assert not verified(entry, POWER_OF_TWO, statement, held.proved.proof)


@pytest.mark.parametrize(
    ("data", "input_format", "kind", "reason"),
    [
        (b"wtns", "wtns", types_pb2.FAILURE_KIND_INVALID_INPUT, "MALFORMED_INPUT"),
        (b"{}", "circom.json", types_pb2.FAILURE_KIND_INVALID_INPUT, "CIRCUIT_INPUT"),
        (b"x", "filecoin.partition", types_pb2.FAILURE_KIND_INVALID_INPUT, "MALFORMED_INPUT"),
    ],
)
async def test_a_bad_input_is_invalid_and_leaves_the_prover_running(
    tmp_path: Path, data: bytes, input_format: str, kind: int, reason: str
) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT, wasm=True)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        session.desire(lease_of(entry, data, input_format=input_format))
        held = await outcome(session)
        assert (held.failure.kind, held.failure.reason) == (kind, reason)
        assert held.failure.detail
        good = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        session.desire(lease_of(entry, good, lease_id="1.2"))
        assert (await outcome(session, "1.2")).WhichOneof("outcome") == "proved"


async def test_an_input_the_scheduler_lacks_or_changed_is_lost(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        changed = data[:-1] + b"\x01"
        peer.blobs[hashlib.sha256(changed).digest()] = data
        session.desire(
            lease_of(entry, b"nowhere", inline=b""),
            lease_of(entry, changed, inline=b"", lease_id="1.2"),
        )
        for lease_id in ("1.1", "1.2"):
            held = await outcome(session, lease_id)
            assert held.failure.kind == types_pb2.FAILURE_KIND_INPUT_LOST


class PanickingBackend(NativeBackend):
    """The native backend whose native code panics in the last stage, so many times."""

    def __init__(self, panics: int) -> None:
        self.panics = panics

    def lincomb(
        self, curve: str, group: str, points: Sequence[bytes], scalars: Sequence[int]
    ) -> bytes:
        if self.panics and proves():
            self.panics -= 1
            with native._translated("test"):
                partita_native.panic_for_test("a planted panic")
        return super().lincomb(curve, group, points, scalars)


async def test_a_native_panic_is_a_compute_failure_and_the_next_partition_is_proved(
    tmp_path: Path,
) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
    async with serving() as peer, prover_on(peer, tmp_path / "mine", PanickingBackend(1)):
        session = await offered(peer, tmp_path / "theirs")
        session.desire(lease_of(entry, data))
        held = await outcome(session)
        assert held.failure.kind == types_pb2.FAILURE_KIND_COMPUTE
        assert "a planted panic" in held.failure.detail
        session.desire(lease_of(entry, data, lease_id="1.2"))
        assert (await outcome(session, "1.2")).WhichOneof("outcome") == "proved"


async def test_a_backend_that_fails_again_and_again_faults_the_prover(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
    async with serving() as peer:
        backend = PanickingBackend(1000)
        config = config_of(peer, tmp_path / "mine")
        task = asyncio.create_task(Prover(config, backend).run())
        session = await offered(peer, tmp_path / "theirs")
        leases = [lease_of(entry, data, lease_id=f"1.{n}", partition_index=n) for n in range(4)]
        session.desire(*leases)
        actual = await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_FAULTED)
        kinds = [x.failure.kind for x in actual.leases]
        assert kinds[:3] == [types_pb2.FAILURE_KIND_COMPUTE] * 3
        assert kinds[3] in (
            types_pb2.FAILURE_KIND_COMPUTE,
            types_pb2.FAILURE_KIND_HANDED_BACK,
        )
        assert await health(tmp_path / "mine") == health_pb2.HealthCheckResponse.NOT_SERVING
        session.desire(keys=(entry.manifest_sha256,))
        async with asyncio.timeout(TIMEOUT_S):
            assert await task == 70


async def test_a_lease_stopped_in_the_middle_is_listed_until_its_memory_is_unmapped(
    tmp_path: Path,
) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
    backend = GatedBackend()
    async with serving() as peer, prover_on(peer, tmp_path / "mine", backend) as prover:
        session = await offered(peer, tmp_path / "theirs")
        session.desire(lease_of(entry, data))
        await asyncio.to_thread(backend.reached.acquire)
        buffer = prover._runner._works["1.1"].input
        assert buffer is not None
        revision = session.desire(keys=(entry.manifest_sha256,))
        held = await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_STOPPING)
        assert session.actuals[-1].applied == revision
        assert held.held.host > 0
        assert not buffer._map.closed
        backend.open()
        await session.actual(lambda a: not a.leases)
        assert buffer._map.closed


async def test_a_lease_removed_while_its_input_comes_is_stopped(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        peer.hold_downloads = asyncio.Event()
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        session.desire(lease_of(entry, data, inline=b""))
        await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FETCHING)
        session.desire()
        await session.actual(lambda a: not a.leases)


async def test_a_download_that_its_session_s_end_cuts_off_is_begun_again(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        downloads = len(peer.downloads)
        peer.hold_downloads = asyncio.Event()
        data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
        peer.put(data)
        lease = lease_of(entry, data, inline=b"")
        session.desire(lease)
        await session.lease("1.1", lambda x: x.phase == types_pb2.PHASE_FETCHING)
        while len(peer.downloads) == downloads:  # noqa: ASYNC110  (it is under way by then)
            await asyncio.sleep(0)
        session.end()
        again = await peer.session()
        peer.hold_downloads.set()
        again.welcome(revision=peer.catalogue_revision)
        again.desire(lease)
        assert (await outcome(again)).WhichOneof("outcome") == "proved"


async def test_critical_overtakes_inside_the_prover(tmp_path: Path) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    data = (ONE_CONSTRAINT / "witness.wtns").read_bytes()
    backend = GatedBackend()
    async with serving() as peer, prover_on(peer, tmp_path / "mine", backend):
        session = await offered(peer, tmp_path / "theirs")
        normal = [lease_of(entry, data, lease_id=f"1.{n}", partition_index=n) for n in range(3)]
        session.desire(*normal)
        await asyncio.to_thread(backend.reached.acquire)
        critical = lease_of(
            entry, data, lease_id="2.0", job_seq=9, priority=types_pb2.PRIORITY_CRITICAL
        )
        session.desire(*normal, critical)
        waiting = types_pb2.PHASE_WAITING_FOR_DEVICE, types_pb2.PHASE_PROVING
        await session.lease("2.0", lambda x: x.phase in waiting)
        order: list[str] = []
        backend.open()
        await session.actual(lambda a: all(x.phase == types_pb2.PHASE_FINISHED for x in a.leases))
        for actual in session.actuals:
            order += [
                x.lease_id
                for x in actual.leases
                if x.WhichOneof("outcome") and x.lease_id not in order
            ]
        assert order.index("2.0") <= 2
        assert order.index("2.0") < order.index("1.2")


async def test_a_key_that_was_packed_by_its_first_load_is_offered_as_quick_to_load(
    tmp_path: Path,
) -> None:
    entry = add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        cold = session.hellos[-1].offers[0].load_time.ToNanoseconds()
        session.desire(keys=(entry.manifest_sha256,))
        await session.until(
            lambda s: 0 < s.hellos[-1].offers[0].load_time.ToNanoseconds() < cold,
        )


async def test_the_own_port_shows_the_prover_and_its_health(tmp_path: Path) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    labels = ("zone=a", "note=x=y")
    async with serving() as peer, prover_on(peer, tmp_path / "mine", labels=labels):
        await offered(peer, tmp_path / "theirs")
        written = run_file(tmp_path / "mine")
        async with grpc.aio.insecure_channel(written["address"]) as channel:
            info = await prover_pb2_grpc.ProverServiceStub(channel).GetInfo(
                prover_pb2.GetInfoRequest()
            )
        assert info.hello.prover_id == "p-1"
        assert info.hello.instance_id == written["instance_id"]
        assert [x.circuit_id for x in info.hello.offers] == [ONE_CONSTRAINT.name]
        assert dict(info.hello.labels) == {"zone": "a", "note": "x=y"}
        assert info.scheduler_address == peer.address
        assert await health(tmp_path / "mine") == health_pb2.HealthCheckResponse.SERVING
    assert not (tmp_path / "mine" / "run" / "p-1.json").exists()


async def test_an_operator_s_drain_is_shown_and_withdrawn(tmp_path: Path) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        session.desire(drain=True)
        await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_DRAINING)
        assert await health(tmp_path / "mine") == health_pb2.HealthCheckResponse.NOT_SERVING
        session.desire()
        await session.actual(lambda a: a.condition == dispatch_pb2.CONDITION_READY)
        assert await health(tmp_path / "mine") == health_pb2.HealthCheckResponse.SERVING


async def test_a_circuit_that_left_the_catalogue_is_not_offered_any_more(tmp_path: Path) -> None:
    add(tmp_path / "theirs", ONE_CONSTRAINT)
    async with serving() as peer, prover_on(peer, tmp_path / "mine"):
        session = await offered(peer, tmp_path / "theirs")
        Catalogue(tmp_path / "theirs").remove(ONE_CONSTRAINT.name)
        session.desire(catalogue_revision=peer.add_catalogue(tmp_path / "theirs"))
        await session.until(lambda s: not s.hellos[-1].offers)


async def health(data_dir: Path) -> int:
    async with grpc.aio.insecure_channel(run_file(data_dir)["address"]) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="partita.v1.ProverService")
        )
        return int(answer.status)
