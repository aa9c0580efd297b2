"""Memory that the kernel refuses to native code: a typed failure, and the work goes elsewhere."""

from __future__ import annotations

import resource
from pathlib import Path

from benchmarks.circuit import Mixed, write_r1cs
from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, set_up_circuit
from partita.circuits.wtns import write_wtns
from partita.groth16.keys import KeyFamily
from partita.v1 import types_pb2
from tests.system.cluster import Cluster, Process, eventually
from tests.system.faulty_prover import Fault

# Less than the sums of this circuit need, more than anything else in the prover asks for.
_SLACK_BYTES = 8 << 20
_CIRCUIT = Mixed.of_domain("bn254", 14)


def limit_data_to_what_it_has(process: Process) -> None:
    """Let the kernel refuse a process more private memory than it has, and a little."""
    pid = process.popen.pid
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmData:"))
    _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
    limit = int(line.split()[1]) * 1024 + _SLACK_BYTES
    resource.prlimit(pid, resource.RLIMIT_DATA, (limit, hard))


def test_memory_refused_to_native_code_is_typed_raises_the_peak_and_the_job_ends_elsewhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    r1cs = tmp_path / "mixed.r1cs"
    write_r1cs(r1cs, _CIRCUIT.system())
    catalogue = Catalogue(cluster.data_dir / "circuits")
    set_up_circuit(catalogue, "mixed", CircuitSources(r1cs=r1cs), KeyFamily.SNARKJS)
    cluster.scheduler()
    gate = cluster.gate()
    tight = cluster.prover("tight", Fault(gate=str(gate.path)))
    cluster.until_offered("mixed", "tight")
    witness = write_wtns(_CIRCUIT.witness(1))
    job_id = cluster.client.submit("mixed", [witness], "wtns").job.job_id
    cluster.until_at_gate("tight")
    limit_data_to_what_it_has(tight)
    (first,) = cluster.view("tight").desired.leases
    gate.open()

    def failures() -> list[types_pb2.Failure]:
        return list(cluster.client.get(job_id).partitions[0].failures)

    failure = eventually(failures, "the failure")[0]
    assert failure.kind == types_pb2.FAILURE_KIND_RESOURCE
    assert failure.reason == "OUT_OF_MEMORY"
    assert "bytes of memory were refused" in failure.detail
    assert failure.prover_id == "tight"

    # Nobody else is there, so it is tried once more, with more memory reserved.
    gate = cluster.gate()

    def again() -> int:
        leases = cluster.view("tight").desired.leases
        return leases[0].reserved.host if leases and leases[0].attempt > first.attempt else 0

    assert eventually(again, "another lease") >= first.reserved.host * 11 // 10
    cluster.prover("roomy")
    cluster.until_offered("mixed", "roomy")
    gate.open()
    (partition,) = cluster.completed(job_id, "mixed")
    assert partition.prover_id == "roomy"
    assert {x.kind for x in partition.failures} == {types_pb2.FAILURE_KIND_RESOURCE}
    assert tight.running
    assert cluster.view("tight").connected
