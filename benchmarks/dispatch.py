"""Dispatch: partitions a second through a scheduler with 100 provers that need no time.

The scheduler is a process of its own with its store on disk and verification on; the load tool
shares the machine's cores with it. First everything at once: partitions a second, and the
scheduler's CPU time a partition without that of verification. Then a steady half of the required
load: the time from a job's submission (made durable in it) to the arrival of each of its
partitions at a prover.
"""

from __future__ import annotations

import asyncio
import json
import os
import pstats
import statistics
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.instant import InstantProver, Proved, proved_products, running
from benchmarks.metered_scheduler import POOL_NAME
from benchmarks.options import options
from benchmarks.processes import Services, services_in
from benchmarks.report import ROOT, Figure, Report
from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit
from partita.circuits.zkey import read_zkey
from partita.groth16.native import NativeBackend
from partita_client.aio import AsyncClient

N_PROVERS = 100
REQUIRED_PER_S = 800
MAX_CPU_MS = 0.5
MAX_P99_MS = 20.0

_CIRCUIT = "product"
_FOLDER = ROOT / "tests" / "vectors" / "edge" / "one-constraint-bn254"
_DISTINCT = 64
_JOB_SIZE = 1000
_SMALL_JOB = 10
_WAIT_S = 600.0


def _cpu_s(entry: Path) -> float:
    """CPU seconds of a process, its ended threads included, or of a thread: its entry in /proc."""
    # The two counters follow the name, which may hold spaces, and eleven fields.
    counters = (entry / "stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, counters)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds of a scheduler so far: of verification, and of all else."""

    verification_s: float
    other_s: float

    @classmethod
    def of(cls, pid: int, names: Path) -> CpuTimes:
        """Read them from /proc.

        Python's threads are told by `names`, all others name themselves. In a scheduler the pool
        of the native extension does nothing but verify. All else is what the process used less
        that: threads that nobody knows, and those that have ended.
        """
        python = json.loads(names.read_text())
        verification_s = 0.0
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                comm = (task / "comm").read_text().strip()
                if python.get(task.name, comm).startswith(("verifier", POOL_NAME)):
                    verification_s += _cpu_s(task)
        return cls(verification_s, _cpu_s(Path(f"/proc/{pid}")) - verification_s)

    def since(self, before: CpuTimes) -> CpuTimes:
        """What was used between two looks."""
        return CpuTimes(self.verification_s - before.verification_s, self.other_s - before.other_s)


@dataclass(frozen=True, slots=True)
class Flood:
    """What a round of everything at once gave."""

    per_s: float
    cpu_ms: float
    verification_ms: float


class Load:
    """Jobs against one scheduler."""

    def __init__(self, client: AsyncClient, products: list[Proved], services: Services) -> None:
        self._client = client
        self._products = products
        self._services = services
        self._names = services.data_dir / "threads.json"

    async def flood(self, n_partitions: int) -> Flood:
        """Submit jobs at once and wait for all."""
        sizes = [_JOB_SIZE] * (n_partitions // _JOB_SIZE)
        if n_partitions % _JOB_SIZE:
            sizes.append(n_partitions % _JOB_SIZE)
        pid = self._services.scheduler_pid
        cpu, start_s = CpuTimes.of(pid, self._names), time.monotonic()
        await asyncio.gather(*(self._job(size) for size in sizes))
        seconds = time.monotonic() - start_s
        used = CpuTimes.of(pid, self._names).since(cpu)
        return Flood(
            n_partitions / seconds,
            1e3 * used.other_s / n_partitions,
            1e3 * used.verification_s / n_partitions,
        )

    async def steady(self, per_s: float, seconds: float) -> dict[str, float]:
        """Submit small jobs at a steady rate; returns each job's time of submission."""
        submitted: dict[str, float] = {}

        async def one() -> None:
            begun_s = time.monotonic()
            submitted[await self._job(_SMALL_JOB)] = begun_s

        start_s = time.monotonic()
        tasks = []
        for i in range(int(per_s * seconds / _SMALL_JOB)):
            await asyncio.sleep(start_s + i * _SMALL_JOB / per_s - time.monotonic())
            tasks.append(asyncio.create_task(one()))
        await asyncio.gather(*tasks)
        return submitted

    async def _job(self, size: int) -> str:
        inputs = [self._products[i % len(self._products)].wtns for i in range(size)]
        answer = await self._client.submit(_CIRCUIT, inputs, "wtns")
        job = await self._client.wait(answer.job.job_id, _WAIT_S)
        assert job.partitions_done == size, job.failure
        return str(answer.job.job_id)


@dataclass(frozen=True, slots=True)
class Found:
    """All that was measured: floods, and latencies in ms at the steady load."""

    floods: list[Flood]
    latency_ms: list[float]


async def measure(
    services: Services,
    products: list[Proved],
    *,
    n_provers: int,
    rounds: int,
    n_partitions: int,
    steady_s: float,
) -> Found:
    """Connect the provers and run both loads."""
    manifest = Catalogue(services.data_dir / "circuits").show(_CIRCUIT).manifest_sha256
    proofs = {product.sha256: product.proof for product in products}
    provers = [
        InstantProver(services.prover_address, f"instant-{i:03}", _CIRCUIT, manifest, proofs)
        for i in range(n_provers)
    ]
    async with running(provers), AsyncClient(services.address) as client:
        load = Load(client, products, services)
        await load.flood(n_partitions // 4)
        floods = [await load.flood(n_partitions) for _ in range(rounds)]
        for prover in provers:
            prover.arrived_s.clear()
        submitted = await load.steady(REQUIRED_PER_S / 2, steady_s)
    latency_ms = [
        1e3 * (at_s - submitted[job_id])
        for prover in provers
        for (job_id, _), at_s in prover.arrived_s.items()
    ]
    return Found(floods, sorted(latency_ms))


def prepare(data_dir: Path) -> list[Proved]:
    """Add the circuit to a catalogue and prove its products."""
    backend = NativeBackend()
    zkey = _FOLDER / "circuit.zkey"
    catalogue = Catalogue(data_dir / "circuits")
    add_circuit(catalogue, _CIRCUIT, CircuitSources(zkey=zkey), backend)
    key = backend.load(read_zkey(str(zkey), zkey.read_bytes()), check=False)
    return proved_products(backend, key, _DISTINCT)


def figures(found: Found) -> list[Figure]:
    """Judge what was measured."""
    speed = statistics.median(flood.per_s for flood in found.floods)
    cpu = statistics.median(flood.cpu_ms for flood in found.floods)
    p99 = found.latency_ms[int(len(found.latency_ms) * 0.99)]
    return [
        Figure(
            f"throughput, {N_PROVERS} provers",
            speed,
            "partitions/s",
            low=REQUIRED_PER_S,
            rounds={"partita": [flood.per_s for flood in found.floods]},
            rounds_unit="partitions/s",
        ),
        Figure(
            "scheduler's CPU a partition, verification not counted",
            cpu,
            "ms",
            high=MAX_CPU_MS,
            rounds={
                "without verification": [flood.cpu_ms for flood in found.floods],
                "verification": [flood.verification_ms for flood in found.floods],
            },
            rounds_unit="ms",
        ),
        Figure(
            f"submission to arrival at a prover, p99 at {REQUIRED_PER_S // 2} partitions/s",
            p99,
            "ms",
            high=MAX_P99_MS,
            rounds={"p50 and p99": [found.latency_ms[len(found.latency_ms) // 2], p99]},
            rounds_unit="ms",
            note=f"{len(found.latency_ms)} partitions in jobs of {_SMALL_JOB}",
        ),
    ]


def main() -> None:
    """Measure dispatch, or profile it with PROFILE=FILE in the environment."""
    given = options(__doc__, rounds=3)
    profile = os.environ.get("PROFILE", "")
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        data_dir = Path(folder)
        products = prepare(data_dir)
        with services_in(data_dir) as services:
            arguments = ["--threads", str(data_dir / "threads.json")]
            if profile:
                arguments += ["--profile", profile]
            services.start_scheduler(*arguments)
            found = asyncio.run(
                measure(
                    services,
                    products,
                    n_provers=N_PROVERS,
                    rounds=given.rounds,
                    n_partitions=2000 if given.quick else 12_000,
                    steady_s=3 if given.quick else 15,
                )
            )
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        print(*(f"{figure.name}: {figure.value:.3g}" for figure in figures(found)), sep="\n")
        return
    Report(
        "dispatch",
        "Dispatch",
        f"A scheduler process, {N_PROVERS} provers in one load process on the same cores, a real "
        "store, every proof verified (BN254, one constraint). Median of rounds.",
        figures(found),
        given.quick,
    ).save()


if __name__ == "__main__":
    main()
