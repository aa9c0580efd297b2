"""`partita up` with real processes: a first job, deaths of children and parent, the drain."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from partita_client import AsyncClient
from tests.system.cluster import clean_environment

ONE = Path("tests/vectors/edge/one-constraint-bn254")
PARTITA = (sys.executable, "-m", "partita.cli.main")
LIMIT_S = 60


@dataclass(frozen=True)
class Up:
    """A running `partita up`, `scheduler` or `prover`."""

    process: asyncio.subprocess.Process
    ready: dict[str, Any]
    data_dir: Path

    def pid_of(self, name: str) -> int:
        """The process of the scheduler or of a prover."""
        pid: int = json.loads((self.data_dir / "run" / f"{name}.json").read_text())["pid"]
        return pid


def environment(data_dir: Path) -> dict[str, str]:
    return {
        **clean_environment(),
        "PARTITA_DATA_DIR": str(data_dir),
        "PARTITA_SCHEDULER__LISTEN": "127.0.0.1:0",
        "PARTITA_SCHEDULER__PROVER_LISTEN": "127.0.0.1:0",
        "PARTITA_SCHEDULER__METRICS_LISTEN": "127.0.0.1:0",
        "PARTITA_PROVER__LISTEN": "127.0.0.1:0",
        "PARTITA_PROVER__BACKOFF_IDLE": "1s",
    }


async def partita(data_dir: Path, *arguments: object) -> tuple[int, str]:
    """Run one command line; its exit code and stdout."""
    process = await asyncio.create_subprocess_exec(
        *PARTITA,
        *map(str, arguments),
        env=environment(data_dir),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode is not None
    return process.returncode, out.decode()


def up(data_dir: Path, *arguments: str) -> AbstractAsyncContextManager[Up]:
    return started(data_dir, "up", *arguments)


@asynccontextmanager
async def started(data_dir: Path, verb: str, *arguments: str) -> AsyncGenerator[Up, None]:
    with (data_dir.parent / "up.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *PARTITA,
            *(verb, "--json", *arguments),
            env=environment(data_dir),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), LIMIT_S)
        yield Up(process, json.loads(line), data_dir)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for is over."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def until(true: Callable[[], bool]) -> None:
    """Return once something outside this process is so."""
    async with asyncio.timeout(LIMIT_S):
        while not true():  # noqa: ASYNC110 - other processes set no event of ours
            await asyncio.sleep(0.02)


async def until_gone(*pids: int) -> None:
    await until(lambda: not any(is_alive(pid) for pid in pids))


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    code, _ = await partita(
        path,
        *("circuits", "add", "one", "--zkey", ONE / "circuit.zkey"),
        *("--wasm", ONE / "circuit.wasm", "--r1cs", ONE / "circuit.r1cs"),
    )
    assert code == 0
    return path


def body_of(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
        body: bytes = answer.read()
    return body


async def test_scheduler_and_prover_run_apart_and_listen_where_they_are_told(
    data_dir: Path,
) -> None:
    anywhere = "127.0.0.1:0"
    addresses = [f"--{name}={anywhere}" for name in ("listen", "prover-listen", "metrics-listen")]
    async with (
        started(data_dir, "scheduler", *addresses) as scheduler,
        started(
            data_dir,
            *("prover", f"--connect={scheduler.ready['prover_listen']}", "--prover-id=mine"),
            f"--metrics-listen={anywhere}",
        ) as prover,
    ):
        written = json.loads((data_dir / "run" / "mine.json").read_text())
        for address in (scheduler.ready["metrics_listen"], written["metrics_listen"]):
            metrics = await asyncio.to_thread(body_of, f"http://{address}/metrics")
            assert b"partita_build_info" in metrics
        code, _ = await partita(
            data_dir, *("submit", "one", "--input", ONE / "input.json", "--wait")
        )
        assert code == 0
        for running in (prover, scheduler):
            running.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(running.process.wait(), LIMIT_S) == 0


async def test_a_first_job_comes_back_as_verified_proofs_and_a_drain_leaves_nothing(
    data_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    async with up(data_dir, "--provers", "2") as running:
        code, _ = await partita(
            data_dir,
            *("submit", "one", "--input", *[ONE / "input.json"] * 3, "--wait", "--out", out),
        )
        assert code == 0
        code, text = await partita(data_dir, "fleet", "--json")
        fleet = json.loads(text)
        assert [prover["prover_id"] for prover in fleet["provers"]] == running.ready["provers"]
        assert sum(prover["proved"] for prover in fleet["provers"]) == 3
        pids = [running.pid_of(name) for name in ("scheduler", *running.ready["provers"])]
        running.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running.process.wait(), LIMIT_S) == 0
    assert not any(is_alive(pid) for pid in pids)
    for index in range(3):
        code, _ = await partita(
            data_dir,
            *("verify", "--vkey", ONE / "verification_key.json"),
            *("--public", out / str(index) / "public.json"),
            *("--proof", out / str(index) / "proof.json"),
        )
        assert code == 0


async def test_a_killed_prover_and_a_killed_scheduler_come_back_where_they_were(
    data_dir: Path,
) -> None:
    async with up(data_dir) as running, AsyncClient(running.ready["scheduler"]) as client:
        (name,) = running.ready["provers"]
        for victim in (name, "scheduler"):
            old = running.pid_of(victim)
            os.kill(old, signal.SIGKILL)
            await until_gone(old)
            await asyncio.wait_for(
                client.prove("one", [ONE / "input.json"], "circom.json"), LIMIT_S
            )
            assert running.pid_of(victim) != old
        running.process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(running.process.wait(), LIMIT_S) == 0


async def test_the_children_die_with_a_parent_that_is_killed(data_dir: Path) -> None:
    async with up(data_dir) as running:
        pids = [running.pid_of(name) for name in ("scheduler", *running.ready["provers"])]
        running.process.kill()
        await until_gone(*pids)


async def test_provers_drain_before_the_scheduler_and_a_second_signal_ends_all_at_once(
    data_dir: Path,
) -> None:
    async with up(data_dir) as running:
        scheduler, prover = (
            running.pid_of(name) for name in ("scheduler", *running.ready["provers"])
        )
        os.kill(prover, signal.SIGSTOP)  # a drain that takes for ever
        running.process.send_signal(signal.SIGTERM)
        log = data_dir.parent / "up.log"
        await until(lambda: b"draining" in log.read_bytes())
        assert b"scheduler.stopping" not in log.read_bytes()
        assert is_alive(scheduler)
        running.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running.process.wait(), LIMIT_S) == 0
    assert not is_alive(scheduler)
    assert not is_alive(prover)


async def test_a_scheduler_that_cannot_start_ends_up_with_one_and_its_words(
    data_dir: Path,
) -> None:
    async with up(data_dir) as running:
        process = await asyncio.create_subprocess_exec(
            *PARTITA,
            "up",
            env=environment(data_dir),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
        assert (process.returncode, out) == (1, b"")
        lines = err.decode().splitlines()
        assert any(line.startswith("[scheduler] error: ") for line in lines)
        assert lines[-1].startswith("error: scheduler did not start (exit code 2)")
        assert is_alive(running.pid_of("scheduler"))


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
async def test_scheduler_and_prover_start_one_by_one_find_each_other_and_say_where_they_are(
    data_dir: Path, as_json: bool
) -> None:
    programs: list[asyncio.subprocess.Process] = []

    async def start(*arguments: str) -> str:
        """Start a program and return the line with which it says that it is ready."""
        program = await asyncio.create_subprocess_exec(
            *(*PARTITA, *arguments, *(["--json"] if as_json else [])),
            env=environment(data_dir),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        programs.append(program)
        assert program.stdout is not None
        return (await asyncio.wait_for(program.stdout.readline(), LIMIT_S)).decode()

    try:
        scheduler = await start("scheduler")
        written = json.loads((data_dir / "run" / "scheduler.json").read_text())
        prover = await start("prover", "--prover-id", "alone")
        mine = json.loads((data_dir / "run" / "alone.json").read_text())
        if as_json:
            assert json.loads(scheduler) == {
                "scheduler": written["listen"],
                "prover_listen": written["prover_listen"],
                "metrics_listen": written["metrics_listen"],
                "pid": programs[0].pid,
                "data_dir": str(data_dir),
            }
            assert json.loads(prover) == {
                "prover_id": "alone",
                "address": mine["address"],
                "schedulers": [written["prover_listen"]],
                "pid": programs[1].pid,
                "data_dir": str(data_dir),
            }
        else:
            assert scheduler.startswith(f"ready: scheduler at {written['listen']}, for provers")
            assert prover.startswith(f"ready: prover alone at {mine['address']}, for the sched")
        async with AsyncClient(written["listen"]) as client:
            proving = client.prove("one", [ONE / "witness.wtns"], "wtns")
            (partition,) = await asyncio.wait_for(proving, LIMIT_S)
        assert partition.prover_id == "alone"
        for program in reversed(programs):
            program.terminate()
            out, _ = await asyncio.wait_for(program.communicate(), LIMIT_S)
            assert (program.returncode, out) == (0, b"")
    finally:
        for program in programs:
            if program.returncode is None:
                program.kill()
                await program.wait()
