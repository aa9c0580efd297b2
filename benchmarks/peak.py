"""Measured peak of a prover ÷ what it announces.

A prover process is told to keep the key of its one circuit, packed before. Idle is its resident
size once the key is loaded and before anything was proved; the peak is its highest resident size
in one job, less idle, against the peak of its offer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import grpc

from benchmarks.circuit import Mixed, write_r1cs
from benchmarks.options import options
from benchmarks.processes import forget_peak, services_in, status_bytes
from benchmarks.report import Figure, Report
from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit, set_up_circuit
from partita.circuits.packed import PackedKeys
from partita.circuits.wtns import write_wtns
from partita.groth16.curves import CURVES
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.v1 import dispatch_pb2, fleet_pb2, fleet_pb2_grpc, proving_pb2
from partita_client import Client

LOW, HIGH = 0.9, 1.0
_CIRCUIT = "mixed"
_PROVER = "peak"
_MIB = 1 << 20
_DEADLINE_S = 600.0


def measure(curve: str, log_size: int) -> Figure:
    """Run a prover on one curve and size."""
    circuit = Mixed.of_domain(curve, log_size)
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        data_dir = Path(folder)
        _add(data_dir, circuit)
        witness = data_dir / "input.wtns"
        witness.write_bytes(write_wtns(circuit.witness(1)))
        with services_in(data_dir) as services:
            services.start_scheduler()
            pid = services.start_prover(_PROVER, _CIRCUIT)
            with Client(services.address) as client:
                _load_key(services.address, client)
                idle = status_bytes(pid, "VmRSS")
                forget_peak(pid)
                _prove(client, witness)
                peak = status_bytes(pid, "VmHWM")
                announced = next(
                    int(offer.peak.host)
                    for view in client.fleet().provers
                    for offer in view.hello.offers
                )
    return Figure(
        f"{curve}, 2^{log_size} constraints",
        (peak - idle) / announced,
        low=LOW,
        high=HIGH,
        rounds={
            "announced": [announced / _MIB],
            "measured": [(peak - idle) / _MIB],
            "idle, key loaded": [idle / _MIB],
        },
        rounds_unit="MiB",
    )


def _add(data_dir: Path, circuit: Mixed) -> None:
    """Add the circuit with nothing but its key: no job of it looks at single rows."""
    r1cs = data_dir / "mixed.r1cs"
    write_r1cs(r1cs, circuit.system())
    packed_keys = PackedKeys(data_dir / "packed")
    made = Catalogue(data_dir / "made")
    entry = set_up_circuit(
        made, _CIRCUIT, CircuitSources(r1cs=r1cs), KeyFamily.SNARKJS, packed_keys=packed_keys
    )
    add_circuit(
        Catalogue(data_dir / "circuits"),
        _CIRCUIT,
        CircuitSources(zkey=entry.path / "zkey"),
        NativeBackend(),
        packed_keys,
    )
    made.remove(_CIRCUIT)


def _load_key(address: str, client: Client) -> None:
    with grpc.insecure_channel(address) as channel:
        fleet_pb2_grpc.FleetServiceStub(channel).SetResidency(
            fleet_pb2.SetResidencyRequest(
                circuit_id=_CIRCUIT, residency=fleet_pb2.RESIDENCY_PINNED
            ),
            timeout=_DEADLINE_S,
        )
    for fleet in client.watch_fleet():
        keys = [key for view in fleet.provers for key in view.actual.keys]
        if any(key.state == dispatch_pb2.HeldKey.STATE_READY for key in keys):
            return


def _prove(client: Client, witness: Path) -> None:
    submitted = client.submit(_CIRCUIT, [witness], "wtns")
    job = client.wait(submitted.job.job_id, _DEADLINE_S)
    assert job.state == proving_pb2.JOB_STATE_COMPLETED, job.failure


def main() -> None:
    """Measure both curves."""
    given = options(__doc__, rounds=1, quick_rounds=1)
    log_size = 16 if given.quick else 20
    Report(
        "peak",
        "Peak of a prover ÷ announced",
        "Resident memory of a prover process at its highest in a proof, less that of the process "
        "with the key loaded and idle, against the peak in its offer.",
        [measure(curve, log_size) for curve in CURVES],
        given.quick,
    ).save()


if __name__ == "__main__":
    main()
