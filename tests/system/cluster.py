"""A scheduler and provers as real processes, for one test.

Everything lies in one folder, listens on loopback at ports the system chooses, and dies with the
test process. States are waited for by looking at them again and again (`eventually`), with one
generous deadline; nothing is assumed to have happened because time has passed.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeVar

import grpc

from partita.circuits.catalogue import Catalogue, Entry
from partita.circuits.intake import CircuitSources, add_circuit
from partita.circuits.manifest import SynthesisLimits
from partita.cli import child
from partita.groth16.native import NativeBackend
from partita.groth16.verifier import Verifier
from partita.v1 import (
    dispatch_pb2,
    fleet_pb2,
    fleet_pb2_grpc,
    prover_pb2,
    prover_pb2_grpc,
    proving_pb2,
    types_pb2,
)
from partita_client import Client, RetryPolicy
from tests.system.faulty_prover import Fault

ROOT = Path(__file__).resolve().parents[2]
EDGE = ROOT / "tests" / "vectors" / "edge"
HOSTILE = ROOT / "tests" / "vectors" / "hostile"
MERKLE = ROOT / "examples" / "merkle"
DEADLINE_S = 60.0

_POLL_S = 0.02
FAULTY_PROVER = Path(__file__).with_name("faulty_prover.py")
_CHILD = Path(child.__file__)

T = TypeVar("T")


def eventually(look: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Look until what is seen is true, and return it; fail at the deadline, naming `what`."""
    end_s = time.monotonic() + deadline_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {deadline_s:g} s: {what}; last seen: {seen!r}")
        time.sleep(_POLL_S)


def product_input(number: int) -> dict[str, str]:
    """An input of the `one-constraint` circuit; each number gives another statement."""
    return {"left": str(number + 2), "right": "11"}


def product_statement(number: int) -> bytes:
    """The statement of `product_input(number)`."""
    return ((number + 2) * 11).to_bytes(32, "little")


class Gate:
    """A lock that proofs of a faulty prover wait for; closed when made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self._file: IO[bytes] | None = path.open("rb")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        """Let everybody through from now on; also closes its file."""
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass
class Process:
    """A program under test.

    Attributes:
        name: for logs.
        popen: the process.
        log: what it writes.
    """

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        """What it has written."""
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self.popen.kill()
        self.popen.wait(DEADLINE_S)

    def terminate(self) -> int:
        """Ask it to end, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Return its exit code once it has ended."""
        return self.popen.wait(DEADLINE_S)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None


class Cluster:
    """The processes of one test and what they share.

    Attributes:
        root: the folder of the test.
        data_dir: of the scheduler, and of provers that were given no other.
        processes: all that were started, the newest last.
        gates: all that were made, the newest last.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data_dir = root / "data"
        self.journal = root / "journal"
        self.processes: list[Process] = []
        self.address = ""
        self.prover_address = ""
        self.gates: list[Gate] = []
        self._clients: list[Client] = []

    def close(self) -> None:
        """End everything that was started."""
        for gate in self.gates:
            gate.open()
        for client in self._clients:
            client.close()
        for process in reversed(self.processes):
            if process.running:
                process.kill()

    # What there is before anything runs

    def add(
        self,
        name: str,
        folder: Path,
        *,
        without: Sequence[str] = (),
        instead: Mapping[str, Path] | None = None,
        time_ms: int | None = None,
    ) -> Entry:
        """Add a folder of compiled files to the catalogue.

        Args:
            name: of the circuit.
            folder: with circuit.zkey and the rest.
            without: roles to leave out.
            instead: other files for some roles.
            time_ms: another time limit of the witness program.
        """
        files = {role: folder / f"circuit.{role}" for role in ("zkey", "wasm", "r1cs", "sym")}
        files.update(instead or {})
        given = {role: path for role, path in files.items() if role not in without}
        catalogue = Catalogue(self.data_dir / "circuits")
        entry = add_circuit(catalogue, name, CircuitSources(**given), NativeBackend())
        if time_ms is None:
            return entry
        limits = entry.manifest.limits
        assert limits is not None
        manifest = replace(entry.manifest, limits=SynthesisLimits(limits.memory_bytes, time_ms))
        (entry.path / "manifest.json").write_bytes(manifest.to_json())
        return catalogue.show(name)

    def gate(self, name: str = "gate") -> Gate:
        """Make a closed gate."""
        gate = Gate(self.root / name)
        self.gates.append(gate)
        return gate

    # Processes

    def scheduler(self, **settings: object) -> Process:
        """Start the scheduler, where it listened before if it did, and wait until it is ready.

        Args:
            settings: keys of its configuration.
        """
        process = self.launch_scheduler(**settings)
        written = self.data_dir / "run" / "scheduler.json"

        def addresses() -> dict[str, Any] | None:
            if not process.running:
                raise AssertionError(f"the scheduler ended:\n{process.text}")
            if not written.exists():
                return None
            found: dict[str, Any] = json.loads(written.read_text())
            return found if found["pid"] == process.popen.pid else None

        found = eventually(addresses, "the scheduler's addresses") or {}
        self.address, self.prover_address = found["listen"], found["prover_listen"]
        return process

    def launch_scheduler(self, **settings: object) -> Process:
        """Start a scheduler and return at once."""
        values = {
            "data_dir": self.data_dir,
            "listen": self.address or "127.0.0.1:0",
            "prover_listen": self.prover_address or "127.0.0.1:0",
            "metrics_listen": "",
            "check_invariants": True,
            **settings,
        }
        return self.launch(
            "scheduler", ["-m", "partita.scheduler"], _variables("SCHEDULER", values)
        )

    def prover(self, prover_id: str, fault: Fault | None = None, **settings: object) -> Process:
        """Start a prover and return at once.

        Args:
            prover_id: its name.
            fault: what is wrong with it; every prover writes the test's journal.
            settings: keys of its configuration.
        """
        fault = replace(fault or Fault(), journal=str(self.journal))
        values = {
            "prover_id": prover_id,
            "schedulers": json.dumps([self.prover_address]),
            "listen": "127.0.0.1:0",
            "data_dir": self.data_dir,
            "check_invariants": True,
            "cores": 1,
            "backoff": "50ms",
            "backoff_busy": "200ms",
            "backoff_idle": "200ms",
            **settings,
        }
        environment = {**_variables("PROVER", values), **fault.environment()}
        return self.launch(prover_id, [str(FAULTY_PROVER)], environment)

    def launch(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> Process:
        """Run Python with arguments; it dies with this process."""
        logs = self.root / "logs"
        logs.mkdir(exist_ok=True)
        log = logs / f"{len(self.processes):02}-{name}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [
                    *(sys.executable, "-IS", str(_CHILD), str(os.getpid())),
                    *(sys.executable, *arguments),
                ],
                env={**clean_environment(), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        return process

    def command(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a `partita` command against this cluster until it ends."""
        return subprocess.run(
            [sys.executable, "-m", "partita.cli.main", *map(str, arguments)],
            env={**clean_environment(), **self.command_environment()},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def command_environment(self) -> dict[str, str]:
        """What tells a `partita` command where this cluster is."""
        return {"PARTITA_DATA_DIR": str(self.data_dir), "PARTITA_SCHEDULER": self.address}

    # Looking

    @property
    def client(self) -> Client:
        """A client of the scheduler."""
        if not self._clients:
            self.new_client()
        return self._clients[0]

    def new_client(self) -> Client:
        """A client with a channel of its own."""
        client = Client(self.address, retry=RetryPolicy(give_up_after_s=DEADLINE_S, most_s=0.5))
        self._clients.append(client)
        return client

    def provers(self) -> dict[str, fleet_pb2.ProverView]:
        """The fleet as the scheduler shows it, by prover_id."""
        with grpc.insecure_channel(self.address) as channel:
            stub = fleet_pb2_grpc.FleetServiceStub(channel)
            answer = stub.ListProvers(
                fleet_pb2.ListProversRequest(), timeout=DEADLINE_S, wait_for_ready=True
            )
        return {view.hello.prover_id: view for view in answer.provers}

    def view(self, prover_id: str) -> fleet_pb2.ProverView:
        """One prover as the scheduler shows it; empty if it is unknown."""
        return self.provers().get(prover_id, fleet_pb2.ProverView())

    def own_view(self, prover_id: str) -> prover_pb2.GetInfoResponse:
        """One prover as it shows itself, which needs no scheduler."""
        path = self.data_dir / "run" / f"{prover_id}.json"
        with grpc.insecure_channel(json.loads(path.read_text())["address"]) as channel:
            stub = prover_pb2_grpc.ProverServiceStub(channel)
            answer: prover_pb2.GetInfoResponse = stub.GetInfo(
                prover_pb2.GetInfoRequest(), timeout=DEADLINE_S
            )
        return answer

    def until_offered(self, circuit_id: str, *prover_ids: str) -> None:
        """Wait until provers are connected and offer a circuit."""

        def offered() -> bool:
            views = self.provers()
            return all(
                prover_id in views
                and views[prover_id].connected
                and any(
                    offer.circuit_id == circuit_id and not offer.unusable_reason
                    for offer in views[prover_id].hello.offers
                )
                for prover_id in prover_ids
            )

        eventually(offered, f"{circuit_id} offered by {prover_ids}")

    def leases(self, prover_id: str) -> list[dispatch_pb2.HeldLease]:
        """The leases that a prover last said it holds."""
        return list(self.view(prover_id).actual.leases)

    def until_at_gate(self, prover_id: str) -> None:
        """Wait until a prover stands at its gate and the scheduler shows that it proves."""

        def at_gate() -> bool:
            # Shown before the proof comes to the gate: until then it could still be stopped.
            proves = any(x.phase == types_pb2.PHASE_PROVING for x in self.leases(prover_id))
            return proves and self.came_to_gate(prover_id)

        eventually(at_gate, f"{prover_id} stands at its gate")

    def came_to_gate(self, prover_id: str) -> bool:
        """Whether a proof of this prover has come to its gate."""
        return prover_id in (line[2] for line in self._journal("gate"))

    def begun(self) -> list[bytes]:
        """The statements of all proofs that were begun, in order of their beginning."""
        return [bytes.fromhex(line[1]) for line in self._journal("begin")]

    def nearly_done(self) -> list[bytes]:
        """The statements of all proofs that reached their last sum, in that order."""
        return [bytes.fromhex(line[1]) for line in self._journal("last")]

    def _journal(self, word: str) -> list[list[str]]:
        if not self.journal.exists():
            return []
        lines = [line.split(" ") for line in self.journal.read_text().splitlines()]
        return [line for line in lines if line[0] == word]

    def submit(self, numbers: Sequence[int], circuit_id: str = "product", **options: Any) -> str:
        """Submit a job of `product_input`s and return its id."""
        inputs = [product_input(number) for number in numbers]
        return str(self.client.submit(circuit_id, inputs, "circom.json", **options).job.job_id)

    def completed(self, job_id: str, circuit_id: str = "product") -> list[proving_pb2.Partition]:
        """Wait for a job, which must complete, and return its verified partitions."""
        return self.verified(circuit_id, self.client.wait(job_id, DEADLINE_S))

    def verified(self, circuit_id: str, job: proving_pb2.Job) -> list[proving_pb2.Partition]:
        """The partitions of a completed job, each proof verified by our verifier."""
        assert job.state == proving_pb2.JOB_STATE_COMPLETED, job
        partitions = self.client.partitions(job.job_id)
        key = Catalogue(self.data_dir / "circuits").show(circuit_id).verifying_key()
        verifier = Verifier(key)
        for index, partition in enumerate(partitions):
            assert partition.index == index
            assert verifier.verify(partition.statement, partition.proof)
        return partitions


@contextmanager
def cluster_in(root: Path) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    cluster = Cluster(root)
    try:
        yield cluster
    finally:
        cluster.close()


def _variables(program: str, values: Mapping[str, object]) -> dict[str, str]:
    return {
        f"PARTITA_{program}__{key.upper()}": str(value).lower()
        if isinstance(value, bool)
        else str(value)
        for key, value in values.items()
    }


def clean_environment() -> dict[str, str]:
    """The environment of this process without what configures Partita."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PARTITA_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
