"""On a terminal: bars and live tables go to it, and stdout still holds the result alone."""

import asyncio
import os
import pty
import re
import sys
from pathlib import Path

import pytest

from partita.v1 import proving_pb2
from tests.cli.test_circuits import ONE
from tests.clients.peer import Peer, serve

LIMIT_S = 60


async def on_a_terminal(address: str, data_dir: Path, *arguments: str) -> tuple[int, str]:
    """Run a command line with a terminal as stdout and stderr; its code and what it showed."""
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "partita.cli.main", *arguments),
            env={
                **os.environ,
                "PARTITA_SCHEDULER": address,
                "PARTITA_DATA_DIR": str(data_dir),
                "TERM": "xterm",
                "COLUMNS": "150",
            },
            stdout=theirs,
            stderr=theirs,
        )
    finally:
        os.close(theirs)
    shown = bytearray()

    def read_all() -> None:
        try:
            while piece := os.read(ours, 4096):
                shown.extend(piece)
        except OSError:  # how Linux says that the other side of a terminal is closed
            return

    await asyncio.wait_for(asyncio.to_thread(read_all), LIMIT_S)
    os.close(ours)
    return await process.wait(), shown.decode()


@pytest.mark.parametrize("verb", ["submit", "watch"])
async def test_progress_is_live_and_the_result_comes_last(tmp_path: Path, verb: str) -> None:
    peer = Peer()
    async with serve(peer) as address:
        if verb == "submit":
            witness = str(ONE / "witness.wtns")
            arguments = ["submit", "c", "--witness", witness, "--wait"]
        else:
            arguments = ["watch", "job-0"]
            peer.jobs["job-0"] = proving_pb2.Job(
                job_id="job-0",
                state=proving_pb2.JOB_STATE_RUNNING,
                partitions_total=1,
                partitions=[proving_pb2.Partition()],
            )
        running = asyncio.create_task(on_a_terminal(address, tmp_path, *arguments))
        await peer.called("WatchJob")
        peer.end_job("job-0")
        code, shown = await running
    assert code == 0
    assert "\x1b[" in shown
    assert shown.rstrip().endswith("job job-0 completed: 1 of 1 proofs verified")


async def test_packing_a_key_shows_how_far_it_is(tmp_path: Path) -> None:
    zkey = ONE / "circuit.zkey"
    code, shown = await on_a_terminal(
        "127.0.0.1:1", tmp_path, "circuits", "add", "one", "--zkey", str(zkey)
    )
    assert code == 0
    assert "\x1b[" in shown
    last = shown[shown.rindex(f"packing {zkey}") :]
    assert re.search(r"(\d+\.\d)/\1 kB", last)
    assert last.rstrip().endswith("added one: bn254, 1 constraints, 1 public inputs, takes wtns")
