"""Service tax: a job through a scheduler and a prover process ÷ the same proofs in one process.

Both compute on the same threads with the key resident and the witnesses as .wtns; each proof takes
a second or more. The job is timed from its submission, uploads included, to its verified end; the
other side parses, proves and verifies in a loop.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from benchmarks.circuit import N_PUBLIC, Mixed, write_r1cs
from benchmarks.options import options
from benchmarks.processes import services_in
from benchmarks.report import Report, ratio
from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, set_up_circuit
from partita.circuits.wtns import read_wtns, write_wtns
from partita.circuits.zkey import read_zkey
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend, set_threads
from partita.groth16.prover import prove
from partita.groth16.verifier import Verifier
from partita.v1 import proving_pb2
from partita_client import Client

BOUND = 1.05
_CIRCUIT = "mixed"
_THREADS = 2
_PROVER = "tax"


class InProcess:
    """The proofs of one job without services.

    Args:
        catalogue: holds the circuit.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        entry = catalogue.show(_CIRCUIT)
        path = entry.path / "zkey"
        self._backend = NativeBackend()
        self._key = self._backend.load(read_zkey(str(path), path.read_bytes()), check=False)
        self._verifier = Verifier(entry.verifying_key())

    def prove(self, inputs: list[bytes]) -> float:
        """Prove and verify each input; returns the seconds of all."""
        start = time.perf_counter()
        for data in inputs:
            witness = read_wtns("input", data)
            proof = prove(self._backend, self._key, witness)
            assert self._verifier.verify(witness.statement(N_PUBLIC), proof.to_bytes())
        return time.perf_counter() - start


def run_job(client: Client, inputs: list[bytes]) -> float:
    """Submit the inputs as one job; returns the seconds to its end."""
    start = time.perf_counter()
    submitted = client.submit(_CIRCUIT, inputs, "wtns")
    job = client.wait(submitted.job.job_id)
    seconds = time.perf_counter() - start
    assert job.state == proving_pb2.JOB_STATE_COMPLETED, job.failure
    return seconds


def main() -> None:
    """Take turns on one circuit."""
    given = options(__doc__, rounds=3)
    cpus = sorted(os.sched_getaffinity(0))[:_THREADS]
    os.sched_setaffinity(0, cpus)
    set_threads(_THREADS)
    log_size, n_partitions = (13, 3) if given.quick else (16, 6)
    circuit = Mixed.of_domain("bls12-381", log_size)
    inputs = [write_wtns(circuit.witness(seed)) for seed in range(n_partitions)]
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        data_dir = Path(folder)
        r1cs = data_dir / "mixed.r1cs"
        write_r1cs(r1cs, circuit.system())
        catalogue = Catalogue(data_dir / "circuits")
        set_up_circuit(catalogue, _CIRCUIT, CircuitSources(r1cs=r1cs), KeyFamily.SNARKJS)
        direct = InProcess(catalogue)
        with services_in(data_dir) as services:
            services.start_scheduler()
            services.start_prover(_PROVER, _CIRCUIT)
            with Client(services.address) as client:
                # The first job loads the key. Inputs differ in no round: jobs have no request id.
                run_job(client, inputs[:1])
                direct.prove(inputs[:1])
                pairs = [
                    (run_job(client, inputs), direct.prove(inputs)) for _ in range(given.rounds)
                ]
    figure = ratio(
        f"bls12-381, 2^{log_size} constraints, {n_partitions} partitions",
        ("job over both services", [pair[0] for pair in pairs]),
        ("in one process", [pair[1] for pair in pairs]),
        high=BOUND,
        note="seconds of all partitions together",
    )
    Report(
        "service_tax",
        "Service tax",
        "A scheduler and one prover as processes against a loop in one process that parses, "
        f"proves and verifies the same witnesses; {_THREADS} threads each, in turns.",
        [figure],
        given.quick,
    ).save()


if __name__ == "__main__":
    main()
