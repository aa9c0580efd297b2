"""The main job from end to end: ten partitions, a scheduler and two provers, each proof checked.

`python examples/demo.py [--curve bn254] [--partitions 10] [--provers 2]`: sets the Merkle circuit
up in a catalogue of its own in a temporary folder, makes that many different inputs, starts
`partita up`, submits one job by the command line, shows its progress, and has each proof that
comes back verified: by snarkjs where it and Node are there, otherwise by `partita verify`. Exit
code 0 only if all of them verify; nothing is left running or on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from partita.v1 import proving_pb2
from partita_client import Client, PartitaError

ROOT = Path(__file__).resolve().parents[1]
PARTITA = Path(sys.executable).with_name("partita")
SNARKJS = ROOT / "tools" / "node" / "node_modules" / ".bin" / "snarkjs"
MERKLE = ROOT / "examples" / "merkle"
CIRCUIT = "merkle"

_START_S = 60.0
_STOP_S = 30.0
_POLL_S = 0.05


class DemoError(Exception):
    """The demonstration cannot go on; the message says what to do."""


@dataclass(frozen=True)
class Checked:
    """What the verifier says of one proof."""

    verified: bool
    said: str


def main() -> int:
    """Run the demonstration and return its exit code."""
    arguments = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 110)
    try:
        with tempfile.TemporaryDirectory(prefix="partita-demo-") as folder:
            return _demonstrate(arguments, Path(folder), console)
    except (DemoError, PartitaError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A job through a scheduler and provers.")
    parser.add_argument("--curve", choices=("bn254", "bls12-381"), default="bn254")
    parser.add_argument("--partitions", type=int, default=10, help="1 to 100 (10)")
    parser.add_argument("--provers", type=int, default=2, help="1 to 16 (2)")
    arguments = parser.parse_args()
    for name, most in (("partitions", 100), ("provers", 16)):
        if not 1 <= getattr(arguments, name) <= most:
            parser.error(f"--{name} is {getattr(arguments, name)}; give 1 to {most}")
    return arguments


def _demonstrate(arguments: argparse.Namespace, folder: Path, console: Console) -> int:
    if not PARTITA.exists():
        raise DemoError(f"{PARTITA} is missing: run `make demo`, which installs it")
    has_snarkjs = SNARKJS.exists() and shutil.which("node") is not None
    verifier = "snarkjs" if has_snarkjs else "partita verify"
    data, inputs, proofs = folder / "data", folder / "inputs", folder / "proofs"
    files = MERKLE / arguments.curve
    environment = {
        **os.environ,
        "PARTITA_DATA_DIR": str(data),
        # Any free ports: the demonstration runs beside services that are there already.
        "PARTITA_SCHEDULER__LISTEN": "127.0.0.1:0",
        "PARTITA_SCHEDULER__PROVER_LISTEN": "127.0.0.1:0",
        "PARTITA_SCHEDULER__METRICS_LISTEN": "127.0.0.1:0",
        "PARTITA_PROVER__LISTEN": "127.0.0.1:0",
    }
    environment.pop("PARTITA_SCHEDULER", None)

    console.print(f"setting up the circuit: Merkle membership of depth 20 on {arguments.curve}")
    setup: list[str | Path] = [PARTITA, "circuits", "setup", CIRCUIT, "--insecure"]
    for role in ("r1cs", "wasm", "sym"):
        setup += [f"--{role}", files / f"circuit.{role}"]
    _run(setup, environment)
    vkey = folder / "verification_key.json"
    _run([PARTITA, "circuits", "show", CIRCUIT, "--vkey", vkey], environment)
    count = ["--count", str(arguments.partitions)]
    _run(
        [sys.executable, MERKLE / "tree.py", "--curve", arguments.curve, *count, "--out", inputs],
        environment,
    )

    provers = ["--provers", str(arguments.provers)]
    console.print(f"starting the services: partita up {' '.join(provers)}")
    with _services([PARTITA, "up", *provers], environment, folder / "up.log") as services:
        address = _scheduler(services, data)
        console.print(f"submitting {arguments.partitions} inputs as one job to {address}")
        partitions = _prove(
            sorted(inputs.iterdir()), proofs, address, environment, folder / "submit.log", console
        )
    console.print(f"verifying each proof with {verifier}")
    verify: list[str | Path]
    if has_snarkjs:
        verify = [SNARKJS, "groth16", "verify", vkey]
    else:
        verify = [PARTITA, "verify", "--vkey", vkey]
    with ThreadPoolExecutor(2) as pool:
        checks = list(
            pool.map(
                lambda partition: _check(verify, has_snarkjs, proofs / str(partition.index)),
                partitions,
            )
        )
    return _report(partitions, checks, verifier, console)


def _run(command: Sequence[str | Path], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        name = " ".join(Path(part).name for part in command[:3])
        raise DemoError(f"`{name}` failed with exit code {done.returncode}: {done.stderr.strip()}")


@contextmanager
def _services(
    command: Sequence[str | Path], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The services, stopped as an operator would stop them, which must succeed."""
    with log.open("wb") as output:
        services = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield services
    except (DemoError, PartitaError) as error:
        _stop(services)
        raise DemoError(f"{error}\nthe services said:\n{_tail(log)}") from error
    except BaseException:
        _stop(services)
        raise
    code = _stop(services)
    if code != 0:
        raise DemoError(f"the services stopped with exit code {code}:\n{_tail(log)}")


def _stop(services: subprocess.Popen[bytes]) -> int:
    if services.poll() is None:
        services.send_signal(signal.SIGTERM)
    try:
        return services.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        services.kill()
        return services.wait()


def _scheduler(services: subprocess.Popen[bytes], data: Path) -> str:
    """The address of the scheduler once it answers."""
    written = data / "run" / "scheduler.json"
    give_up_s = time.monotonic() + _START_S
    while not written.exists():
        if services.poll() is not None:
            raise DemoError(f"`partita up` ended with exit code {services.returncode}")
        if time.monotonic() > give_up_s:
            raise DemoError(f"the scheduler did not start within {_START_S:.0f} s")
        time.sleep(_POLL_S)
    address: str = json.loads(written.read_text())["listen"]
    with Client(address) as client:
        client.server_info(give_up_after_s=_START_S)
    return address


def _prove(
    inputs: Sequence[Path],
    proofs: Path,
    address: str,
    environment: dict[str, str],
    log: Path,
    console: Console,
) -> list[proving_pb2.Partition]:
    """Submit the job by the command line, follow it, and return its partitions."""
    command: list[str | Path] = [PARTITA, "submit", CIRCUIT, "--input", *inputs]
    command += ["--request-id", "demo", "--wait", "--out", proofs, "--scheduler", address]
    with Client(address) as client, log.open("wb") as output:
        submission = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            job_id = _submitted(client, submission)
            if job_id is not None:
                _show(client, job_id, console)
            code = submission.wait()
        finally:
            if submission.poll() is None:
                submission.kill()
                submission.wait()
        if code != 0 or job_id is None:
            raise DemoError(f"`partita submit` ended with exit code {code}:\n{_tail(log)}")
        return client.partitions(job_id)


def _submitted(client: Client, submission: subprocess.Popen[bytes]) -> str | None:
    """The id of the job, or None if the command ended without one."""
    while True:
        ended = submission.poll() is not None
        job = next(client.jobs(request_id="demo"), None)
        if job is not None:
            return str(job.job_id)
        if ended:
            return None
        time.sleep(_POLL_S)


def _show(client: Client, job_id: str, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        task = bars.add_task("waiting for a prover", total=None)
        for job in client.watch(job_id):
            at_work = sorted({x.prover_id for x in job.partitions if x.prover_id})
            bars.update(
                task,
                total=job.partitions_total,
                completed=job.partitions_done,
                description=f"proving on {', '.join(at_work)}" if at_work else None,
            )


def _check(verify: Sequence[str | Path], is_snarkjs: bool, proof: Path) -> Checked:
    public, proof = proof / "public.json", proof / "proof.json"
    files = [public, proof] if is_snarkjs else ["--public", public, "--proof", proof]
    done = subprocess.run([*verify, *files], capture_output=True, text=True, check=False)
    said = " ".join((done.stdout + done.stderr).split())
    agrees = "OK!" if is_snarkjs else "the proof verifies"
    return Checked(done.returncode == 0 and agrees in done.stdout, said)


def _report(
    partitions: Sequence[proving_pb2.Partition],
    checks: Sequence[Checked],
    verifier: str,
    console: Console,
) -> int:
    table = Table("partition", "prover", "synthesis", "device", "total", f"verified by {verifier}")
    for partition, check in zip(partitions, checks, strict=True):
        times = partition.timings
        table.add_row(
            str(partition.index),
            partition.prover_id,
            *(
                f"{span.ToNanoseconds() / 1e9:.3f} s"
                for span in (times.synthesis, times.device, times.total)
            ),
            "yes" if check.verified else f"no: {check.said}",
        )
    console.print(table)
    if verifier != "snarkjs":
        console.print(f"snarkjs not found: checked by {verifier}", highlight=False)
    verified = sum(check.verified for check in checks)
    console.print(f"{verified} of {len(checks)} proofs verified", highlight=False)
    return 0 if verified == len(checks) else 1


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


if __name__ == "__main__":
    sys.exit(main())
