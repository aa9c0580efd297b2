"""`partita retry` and the verbs of `partita fleet` against a peer that speaks the wire."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from partita.v1 import fleet_pb2, proving_pb2
from tests.cli.conftest import Cli
from tests.cli.test_circuits import ONE
from tests.clients.peer import Peer, serve

ACTIVE, TRUSTED = fleet_pb2.MODE_ACTIVE, fleet_pb2.TRUST_TRUSTED
VERBS = {
    "cordon": (fleet_pb2.MODE_CORDONED, TRUSTED, "cordoned, trusted"),
    "drain": (fleet_pb2.MODE_DRAINED, TRUSTED, "drained, trusted"),
    "uncordon": (ACTIVE, TRUSTED, "active, trusted"),
    "quarantine": (ACTIVE, fleet_pb2.TRUST_QUARANTINED, "active, quarantined"),
    "release": (ACTIVE, TRUSTED, "active, trusted"),
}


@pytest.fixture
async def peer(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> AsyncGenerator[Peer, None]:
    peer = Peer()
    view = peer.fleet.provers.add(mode=ACTIVE, trust=TRUSTED)
    view.hello.prover_id = "gpu-0"
    async with serve(peer) as address:
        monkeypatch.setenv("PARTITA_SCHEDULER", address)
        yield peer


@pytest.mark.parametrize("verb", VERBS)
async def test_each_verb_sets_its_mode_or_trust_and_says_what_holds_now(
    cli: Cli, peer: Peer, verb: str
) -> None:
    mode, trust, words = VERBS[verb]
    peer.fleet.provers[0].actual.reason = "drained"  # what it said before it hears of the change
    if verb in ("uncordon", "release"):
        await cli("fleet", {"uncordon": "drain", "release": "quarantine"}[verb], "gpu-0")
    ended = await cli("fleet", verb, "gpu-0", "--reason", "new fan")
    assert (ended.code, ended.out) == (0, f"prover gpu-0 is {words}: new fan\n")
    as_json = await cli("fleet", verb, "gpu-0", "--reason", "new fan", "--json")
    assert as_json.object["reason"] == "new fan"
    (view,) = peer.fleet.provers
    assert (view.mode, view.trust, view.reason) == (mode, trust, "new fan")


async def test_options_may_stand_before_the_verb_or_after_it(
    cli: Cli, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(peer) as address:
        monkeypatch.delenv("PARTITA_SCHEDULER")
        for arguments in (
            ("fleet", "--scheduler", address, "--json", "cordon", "gpu-0"),
            ("fleet", "cordon", "gpu-0", "--scheduler", address, "--json"),
        ):
            ended = await cli(*arguments)
            assert (ended.code, ended.object["mode"]) == (0, "cordoned")


async def test_without_a_verb_the_table_is_shown(cli: Cli, peer: Peer) -> None:
    assert "gpu-0" in (await cli("fleet")).out
    assert peer.calls["SetProverMode"] == 0


async def test_an_unknown_prover_is_wrong_input(cli: Cli, peer: Peer) -> None:
    ended = await cli("fleet", "cordon", "nobody", "--json")
    assert (ended.code, ended.object["error"]["reason"]) == (2, "PROVER_UNKNOWN")


async def test_a_retry_prints_the_new_job_and_what_runs_cannot_be_retried(
    cli: Cli, peer: Peer
) -> None:
    await cli("submit", "c", "--witness", ONE / "witness.wtns")
    ended = await cli("retry", "job-0", "--json")
    assert (ended.code, ended.object["error"]["reason"]) == (2, "NOT_RETRYABLE")
    await cli("cancel", "job-0")
    ended = await cli("retry", "job-0")
    assert (ended.code, ended.out) == (0, "job-0-again\n")
    again = await cli("retry", "job-0", "--json")
    assert again.object["job"]["job_id"] == "job-0-again"


async def test_a_retry_that_waits_ends_as_its_job_does(
    cli: Cli, peer: Peer, tmp_path: Path
) -> None:
    await cli("submit", "c", "--witness", ONE / "witness.wtns")
    await cli("cancel", "job-0")
    waiting = asyncio.create_task(cli("retry", "job-0", "--wait", "--out", tmp_path / "o"))
    await peer.called("WatchJob")
    peer.end_job("job-0-again", proving_pb2.JOB_STATE_FAILED)
    assert (await waiting).code == 1
    assert (tmp_path / "o" / "job.json").exists()
    assert (await cli("retry", "job-0", "--out", tmp_path / "o")).code == 2
