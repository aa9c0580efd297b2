"""The verbs on jobs against a peer that speaks the wire: results, files and exit codes."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest

from partita.circuits.snarkjs_json import read_proof_json, read_public_json
from partita.service.grpcio import RpcError
from partita.v1 import dispatch_pb2, fleet_pb2, proving_pb2, types_pb2
from tests.cli.conftest import Cli
from tests.cli.test_circuits import ONE
from tests.clients.peer import Peer, serve

PROOF = read_proof_json("proof.json", (ONE / "proof.json").read_bytes()).to_bytes()
STATEMENT = read_public_json("public.json", (ONE / "public.json").read_bytes(), curve_name="bn254")


@pytest.fixture
async def peer(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> AsyncGenerator[Peer, None]:
    peer = Peer()
    async with serve(peer) as address:
        monkeypatch.setenv("PARTITA_SCHEDULER", address)
        yield peer


async def ended_job(
    peer: Peer, state: proving_pb2.JobState, failure: types_pb2.Failure | None = None
) -> None:
    """End the first job once somebody follows it."""
    await peer.called("WatchJob")
    job = peer.jobs["job-0"]
    if state == proving_pb2.JOB_STATE_COMPLETED:
        peer.results["job-0"] = [
            proving_pb2.Partition(index=index, proof=PROOF, statement=STATEMENT)
            for index in range(job.partitions_total)
        ]
        for partition in job.partitions:
            partition.state = proving_pb2.PARTITION_STATE_PROVED
            partition.prover_id = "gpu-1"
    peer.end_job("job-0", state, failure)


async def test_submit_prints_the_job_and_keeps_the_order_of_the_files(
    cli: Cli, peer: Peer, tmp_path: Path
) -> None:
    paths = []
    for index in range(4):
        paths.append(tmp_path / f"{9 - index}.json")
        paths[-1].write_text(json.dumps({"x": index}))
    ended = await cli(
        *("submit", "c", "--input", *paths[:3], "--priority", "critical", "--input", paths[3]),
        *("--request-id", "mine", "--json"),
    )
    assert (ended.code, ended.object["attached"]) == (0, False)
    assert ended.object["job"]["state"] == "queued"
    request = peer.submissions[0]
    assert [json.loads(p.inline)["x"] for p in request.partitions] == [0, 1, 2, 3]
    assert (request.input_format, request.request_id) == ("circom.json", "mine")
    assert request.priority == types_pb2.PRIORITY_CRITICAL
    again = await cli("submit", "c", "--input", *paths, "--request-id", "mine", "--json")
    assert again.object["attached"]


async def test_wait_writes_the_job_and_each_proof_as_snarkjs_does(
    cli: Cli, peer: Peer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    waiting = asyncio.create_task(
        cli("submit", "c", "--witness", *[ONE / "witness.wtns"] * 2, "--wait", "--out", out)
    )
    await ended_job(peer, proving_pb2.JOB_STATE_COMPLETED)
    ended = await waiting
    assert ended.code == 0
    assert "2 of 2 proofs verified" in ended.out
    assert "gpu-1" in ended.out
    for index in range(2):
        for name in ("proof.json", "public.json"):
            assert (out / str(index) / name).read_text() == (ONE / name).read_text()
    assert json.loads((out / "job.json").read_text())["state"] == "completed"


@pytest.mark.parametrize("wrote_before", [True, False])
async def test_no_proof_of_the_job_before_stays_in_the_folder_and_nothing_else_goes(
    cli: Cli, peer: Peer, tmp_path: Path, wrote_before: bool
) -> None:
    out = tmp_path / "out"
    for place in ("1", "2", "7", "2024", "notes"):
        (out / place).mkdir(parents=True)
        (out / place / "proof.json").write_text("earlier")
        (out / place / "public.json").write_text("earlier")
    (out / "2" / "mine.txt").touch()
    (out / "3").symlink_to(out / "notes")
    if wrote_before:
        (out / "job.json").write_text('{"partitions_total": 5}')
    waiting = asyncio.create_task(
        cli("submit", "c", "--witness", ONE / "witness.wtns", "--wait", "--out", out)
    )
    await ended_job(peer, proving_pb2.JOB_STATE_COMPLETED)
    assert (await waiting).code == 0
    found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    places = ("7", "2024", "notes") if wrote_before else ("1", "2", "7", "2024", "notes")
    kept = {f"{place}/{name}.json" for place in places for name in ("proof", "public")}
    assert found == {"job.json", "0/proof.json", "0/public.json", "2/mine.txt"} | kept
    assert (out / "1").exists() is not wrote_before


async def test_a_failed_job_ends_with_one_and_its_reason(cli: Cli, peer: Peer) -> None:
    failure = types_pb2.Failure(
        kind=types_pb2.FAILURE_KIND_COMPUTE, reason="POISONED", detail="failed on 3 provers"
    )
    waiting = asyncio.create_task(
        cli("submit", "c", "--witness", ONE / "witness.wtns", "--wait", "--json")
    )
    await ended_job(peer, proving_pb2.JOB_STATE_FAILED, failure)
    ended = await waiting
    assert ended.code == 1
    assert "POISONED: failed on 3 provers" in ended.err
    assert ended.object["failure"]["kind"] == "compute"


async def test_await_fetches_later_and_a_cancelled_job_ends_with_one(
    cli: Cli, peer: Peer, tmp_path: Path
) -> None:
    await cli("submit", "c", "--witness", ONE / "witness.wtns")
    cancelled = await cli("cancel", "job-0", "--json")
    assert (cancelled.code, cancelled.object["state"]) == (0, "cancelled")
    ended = await cli("await", "job-0", "--out", tmp_path / "o")
    assert ended.code == 1
    assert json.loads((tmp_path / "o" / "job.json").read_text())["state"] == "cancelled"


async def test_watch_says_each_change_and_the_result(cli: Cli, peer: Peer) -> None:
    await cli("submit", "c", "--witness", ONE / "witness.wtns")
    watching = asyncio.create_task(cli("watch", "job-0"))
    await ended_job(peer, proving_pb2.JOB_STATE_COMPLETED)
    ended = await watching
    assert ended.code == 0
    assert ended.err.splitlines()[-1] == "job-0 completed 1/1"
    assert "1 of 1 proofs verified" in ended.out


async def test_a_waiting_job_shows_what_is_ahead_and_when_it_should_end(
    cli: Cli, peer: Peer
) -> None:
    await cli("submit", "c", "--witness", ONE / "witness.wtns")
    job = peer.jobs["job-0"]
    job.partitions_ahead = 7
    job.expected_end.FromJsonString("2030-01-02T12:03:04Z")
    (listed,) = (await cli("jobs", "--json")).object["jobs"]
    assert (listed["partitions_ahead"], listed["expected_end"]) == (7, "2030-01-02T12:03:04Z")
    outlook = "7 partitions ahead, ends 12:03:04Z"
    assert outlook in " ".join((await cli("jobs")).out.split())
    watching = asyncio.create_task(cli("watch", "job-0"))
    await ended_job(peer, proving_pb2.JOB_STATE_COMPLETED)
    assert f"job-0 queued 0/1, {outlook}" in (await watching).err


async def test_an_unknown_job_is_wrong_input(cli: Cli, peer: Peer) -> None:
    for verb in ("await", "watch", "cancel"):
        ended = await cli(verb, "job-9", "--json")
        assert ended.code == 2
        assert ended.object["error"]["reason"] == "JOB_UNKNOWN"


async def test_the_servers_field_is_shown_as_the_file(cli: Cli, peer: Peer) -> None:
    text = "partitions[1]: partitions[1], section 2 (values): cut off"
    peer.failures["SubmitJob"] = [RpcError(grpc.StatusCode.INVALID_ARGUMENT, "BAD_INPUT", text)]
    path = ONE / "unsatisfied.wtns"
    ended = await cli("submit", "c", "--witness", ONE / "witness.wtns", path)
    assert ended.code == 2
    assert ended.err == f"error: {path}, section 2 (values): cut off\n"


async def test_an_input_that_is_no_json_object_is_named_before_it_is_sent(
    cli: Cli, peer: Peer, tmp_path: Path
) -> None:
    for text in ("{", "[1]", '{"a": 1.5}'):
        (tmp_path / "bad.json").write_text(text)
        ended = await cli("submit", "c", "--input", tmp_path / "bad.json")
        assert ended.code == 2
        assert "bad.json" in ended.err
    assert peer.calls["SubmitJob"] == 0


async def test_jobs_lists_all_pages_and_filters(cli: Cli, peer: Peer) -> None:
    for _ in range(3):
        await cli("submit", "c", "--witness", ONE / "witness.wtns")
    peer.end_job("job-1")
    assert len((await cli("jobs", "--json")).object["jobs"]) == 3
    done = await cli("jobs", "--state", "completed", "--json")
    assert [job["job_id"] for job in done.object["jobs"]] == ["job-1"]
    assert "job-2" in (await cli("jobs")).out
    assert (await cli("jobs", "--state", "done")).code == 2


async def test_fleet_shows_memory_keys_leases_and_why_a_prover_does_nothing(
    cli: Cli, peer: Peer
) -> None:
    manifest = bytes(32)
    peer.fleet.provers.append(
        fleet_pb2.ProverView(
            connected=True,
            mode=fleet_pb2.MODE_ACTIVE,
            trust=fleet_pb2.TRUST_QUARANTINED,
            reason="3 proofs did not verify",
            charged=types_pb2.Bytes(host=5 << 30),
            hello=dispatch_pb2.Hello(
                prover_id="gpu-1",
                total=types_pb2.Bytes(host=8 << 30),
                offers=[dispatch_pb2.CircuitOffer(circuit_id="merkle", manifest_sha256=manifest)],
            ),
            actual=dispatch_pb2.Actual(
                condition=dispatch_pb2.CONDITION_READY,
                leases=[
                    dispatch_pb2.HeldLease(
                        job_id="job-7", partition_index=3, phase=types_pb2.PHASE_PROVING
                    )
                ],
                keys=[
                    dispatch_pb2.HeldKey(
                        manifest_sha256=manifest, state=dispatch_pb2.HeldKey.STATE_LOADING
                    )
                ],
            ),
        )
    )
    peer.fleet.lanes.append(
        fleet_pb2.LaneView(circuit_id="merkle", waiting=4, waiting_for="needs 9.0 GiB on gpu-1")
    )
    text = (await cli("fleet")).out
    for part in (
        "connected, quarantined",
        "5.0 GiB of 8.0 GiB",
        "merkle (loading)",
        "job-7#3 proving",
        "3 proofs did not verify",
        "needs 9.0 GiB on gpu-1",
    ):
        assert part in text
    (prover,) = (await cli("fleet", "--json")).object["provers"]
    assert prover["trust"] == "quarantined"
    assert prover["keys"][0]["circuit_id"] == "merkle"


async def test_the_data_directorys_scheduler_is_the_default(
    cli: Cli, peer: Peer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(peer) as address:
        monkeypatch.delenv("PARTITA_SCHEDULER")
        (data_dir / "run").mkdir(parents=True)
        (data_dir / "run" / "scheduler.json").write_text(json.dumps({"listen": address}))
        assert (await cli("jobs", "--json")).object == {"jobs": []}
