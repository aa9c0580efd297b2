"""Circuits come and go while the scheduler runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from partita.circuits.catalogue import Catalogue
from partita.circuits.intake import CircuitSources, add_circuit, set_up_circuit
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from partita.scheduler.catalogue import CatalogueWatcher
from partita.scheduler.core.events import CatalogueChanged
from partita.v1 import fleet_pb2, proving_pb2
from tests.scheduler.peer import PRODUCT, ROOT, Connect, Prover, connected
from tests.scheduler.running import Running, blob_ref, refused, running, upload

Code = grpc.StatusCode
EDGE = ROOT / "tests/vectors/edge"


async def circuits(service: Running) -> fleet_pb2.ListCircuitsResponse:
    answer: fleet_pb2.ListCircuitsResponse = await service.fleet.ListCircuits(
        fleet_pb2.ListCircuitsRequest()
    )
    return answer


def add(root: Path, name: str, folder: str) -> None:
    add_circuit(
        Catalogue(root), name, CircuitSources(zkey=EDGE / folder / "circuit.zkey"), NativeBackend()
    )


async def test_a_circuit_added_to_the_folder_is_taken_up_and_provers_are_told(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, catalogue_scan="20ms") as service:
        peer = service.peer()
        async with connected(peer):
            await peer.greeted.wait()
            assert peer.welcome is not None
            await asyncio.to_thread(add, data_dir / "circuits", "linear", "linear-only-bls12-381")
            told = await peer.told_of_catalogue(after=peer.welcome.catalogue_revision)
        after = await circuits(service)
    assert told == after.catalogue_revision
    assert [circuit.circuit_id for circuit in after.circuits] == ["linear", "product"]
    linear = after.circuits[0]
    assert (linear.curve, linear.n_public, linear.domain) == ("bls12-381", 3, 16)
    assert linear.family == fleet_pb2.KEY_FAMILY_SNARKJS
    assert {file.role for file in linear.files} == {"zkey", "vk"}


async def test_a_look_whose_caller_goes_away_still_tells_what_it_found(data_dir: Path) -> None:
    told: asyncio.Queue[CatalogueChanged] = asyncio.Queue()
    watcher = CatalogueWatcher(data_dir / "circuits", told.put_nowait)
    loop = asyncio.get_running_loop()

    def add_and_be_left(_: Catalogue) -> None:
        add(data_dir / "circuits", "linear", "linear-only-bls12-381")
        loop.call_soon_threadsafe(caller.cancel)

    caller = asyncio.create_task(watcher.run(add_and_be_left))
    with pytest.raises(asyncio.CancelledError):
        await caller
    async with asyncio.timeout(30):
        event = await told.get()
    assert "linear" in [circuit.circuit_id for circuit in event.circuits]
    assert "linear" in watcher.known.circuits
    await watcher.close()


async def test_what_a_look_found_is_told_before_the_watcher_has_closed(data_dir: Path) -> None:
    told: list[CatalogueChanged] = []
    watcher = CatalogueWatcher(data_dir / "circuits", told.append)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell_begun(_: Catalogue) -> None:
        loop.call_soon_threadsafe(begun.set)

    caller = asyncio.create_task(watcher.run(tell_begun))
    await begun.wait()
    caller.cancel()
    await watcher.close()
    assert len(told) == 1
    await asyncio.gather(caller, return_exceptions=True)
    assert len(told) == 1


async def test_a_circuit_with_a_development_key_is_listed_as_insecure(
    data_dir: Path, prover: Prover
) -> None:
    def set_up() -> None:
        sources = CircuitSources(r1cs=EDGE / "one-constraint-bn254" / "circuit.r1cs")
        set_up_circuit(Catalogue(data_dir / "circuits"), "development", sources, KeyFamily.SNARKJS)

    await asyncio.to_thread(set_up)
    async with running(data_dir, prover) as service:
        listed = await circuits(service)
    assert {c.circuit_id: c.insecure for c in listed.circuits} == {
        "development": True,
        "product": False,
    }


async def test_a_damaged_circuit_does_not_disturb_the_others(
    data_dir: Path, prover: Prover
) -> None:
    broken = data_dir / "circuits" / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    async with running(data_dir, prover) as service:
        assert [c.circuit_id for c in (await circuits(service)).circuits] == ["product"]


def deface(data_dir: Path, **edited: object) -> None:
    """Make the circuit "product" unusable: its manifest edited by hand, or cut off."""
    entry = Catalogue(data_dir / "circuits").show("product")
    text = replace(entry.manifest, **edited).to_json()  # type: ignore[arg-type]
    (entry.path / "manifest.json").write_bytes(text if edited else text[:-1])


async def residency(service: Running) -> None:
    """Ask for something that makes the scheduler look at its catalogue."""
    await service.fleet.SetResidency(
        fleet_pb2.SetResidencyRequest(circuit_id="product", residency=fleet_pb2.RESIDENCY_AUTO)
    )


@pytest.mark.parametrize(
    ("edited", "why"),
    [
        ({}, "is not JSON"),
        ({"n_public": 2}, "vk is of 1 public inputs, not of 2"),
        ({"insecure": True}, "says insecure, but zkey is of no development set-up"),
    ],
    ids=["cut", "n_public", "insecure"],
)
async def test_an_unusable_circuit_is_told_as_such_to_submitters_and_can_be_removed_and_added_again(
    data_dir: Path, prover: Prover, edited: dict[str, object], why: str
) -> None:
    remove = fleet_pb2.RemoveCircuitRequest(circuit_id="product")
    async with running(data_dir, prover) as service:
        deface(data_dir, **edited)
        with refused(Code.NOT_FOUND, "UNKNOWN_CIRCUIT") as refusal:
            await residency(service)
        assert why in refusal.message
        with refused(Code.NOT_FOUND, "UNKNOWN_CIRCUIT") as refusal:
            await service.submit([(2, 3)])
        assert refusal.fields == ("circuit_id",)
        assert why in refusal.message
        assert "remove it with `partita circuits remove` and add it again" in refusal.message
        assert not (await circuits(service)).circuits

        await service.fleet.RemoveCircuit(remove)
        with refused(Code.NOT_FOUND, "UNKNOWN_CIRCUIT") as refusal:
            await service.fleet.RemoveCircuit(remove)
        assert "no circuit is called 'product'" in refusal.message
        await asyncio.to_thread(add, data_dir / "circuits", "product", "one-constraint-bn254")
        await residency(service)
        assert [c.circuit_id for c in (await circuits(service)).circuits] == ["product"]


async def test_an_unusable_circuit_is_not_removed_while_an_open_job_names_it(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover) as service:
        await service.submit([(2, 3)])
        deface(data_dir)
        with refused(Code.FAILED_PRECONDITION, "CIRCUIT_IN_USE"):
            await service.fleet.RemoveCircuit(fleet_pb2.RemoveCircuitRequest(circuit_id="product"))


async def test_a_circuit_can_be_added_from_afar_and_removed_when_no_open_job_names_it(
    service: Running, connect: Connect, data_dir: Path
) -> None:
    (product,) = (await circuits(service)).circuits
    request = fleet_pb2.AddCircuitRequest(circuit_id="copy", manifest_json=product.manifest_json)
    with refused(Code.FAILED_PRECONDITION, "BLOB_MISSING"):
        await service.fleet.AddCircuit(request)
    entry = Catalogue(data_dir / "circuits").show("product")
    for role in entry.manifest.files:
        await upload(service.blobs, entry.file(role).read_bytes())
    added = (await service.fleet.AddCircuit(request)).circuit
    assert added.manifest_sha256 == product.manifest_sha256
    assert (await service.fleet.AddCircuit(request)).circuit == added, "the same again is fine"

    answer = await service.submit([(2, 3)], circuit_id="copy")
    remove = fleet_pb2.RemoveCircuitRequest(circuit_id="copy")
    with refused(Code.FAILED_PRECONDITION, "CIRCUIT_IN_USE"):
        await service.fleet.RemoveCircuit(remove)
    await connect()
    job = await service.end_of(answer.job.job_id)
    assert job.state == proving_pb2.JOB_STATE_COMPLETED
    await service.fleet.RemoveCircuit(remove)
    assert [c.circuit_id for c in (await circuits(service)).circuits] == ["product"]
    with refused(Code.NOT_FOUND, "UNKNOWN_CIRCUIT"):
        await service.fleet.RemoveCircuit(remove)
    with refused(Code.NOT_FOUND, "UNKNOWN_CIRCUIT"):
        await service.submit([(2, 3)], circuit_id="copy")


@pytest.mark.parametrize(
    ("circuit_id", "manifest", "field"),
    [
        ("x", "{", "manifest_json"),
        ("x", "x" * (1 << 20) + "x", "manifest_json"),
    ],
)
async def test_a_wrong_manifest_is_refused(
    service: Running, circuit_id: str, manifest: str, field: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        await service.fleet.AddCircuit(
            fleet_pb2.AddCircuitRequest(circuit_id=circuit_id, manifest_json=manifest)
        )
    assert refusal.fields == (field,)


async def test_a_name_that_is_bound_or_no_name_is_refused(
    service: Running, data_dir: Path, tmp_path: Path
) -> None:
    add(tmp_path / "elsewhere", "other", "linear-only-bn254")
    entry = Catalogue(tmp_path / "elsewhere").show("other")
    for role in entry.manifest.files:
        await upload(service.blobs, entry.file(role).read_bytes())
    manifest = entry.manifest.to_json().decode()
    with refused(Code.FAILED_PRECONDITION, "CIRCUIT_EXISTS"):
        await service.fleet.AddCircuit(
            fleet_pb2.AddCircuitRequest(circuit_id="product", manifest_json=manifest)
        )
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT"):
        await service.fleet.AddCircuit(
            fleet_pb2.AddCircuitRequest(circuit_id="../evil", manifest_json=manifest)
        )
    assert (
        blob_ref((PRODUCT / "circuit.zkey").read_bytes()).sha256.hex()
        == (Catalogue(data_dir / "circuits").show("product").manifest.files["zkey"])
    )


async def test_a_verifying_key_that_is_none_is_refused(service: Running, data_dir: Path) -> None:
    entry = Catalogue(data_dir / "circuits").show("product")
    junk = b"no verifying key"
    for role in entry.manifest.files:
        await upload(service.blobs, junk if role == "vk" else entry.file(role).read_bytes())
    manifest = entry.manifest.to_json().decode()
    manifest = manifest.replace(entry.manifest.files["vk"], blob_ref(junk).sha256.hex())
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        await service.fleet.AddCircuit(
            fleet_pb2.AddCircuitRequest(circuit_id="junk", manifest_json=manifest)
        )
    assert refusal.fields == ("manifest_json.files.vk",)


@pytest.mark.parametrize("says_insecure", [False, True])
async def test_a_key_from_afar_whose_mark_its_manifest_contradicts_is_refused(
    service: Running, tmp_path: Path, says_insecure: bool
) -> None:
    elsewhere = Catalogue(tmp_path / "elsewhere")
    if says_insecure:
        await asyncio.to_thread(add, elsewhere.root, "x", "linear-only-bn254")
    else:
        sources = CircuitSources(r1cs=EDGE / "one-constraint-bn254" / "circuit.r1cs")
        await asyncio.to_thread(set_up_circuit, elsewhere, "x", sources, KeyFamily.SNARKJS)
    entry = elsewhere.show("x")
    for role in entry.manifest.files:
        await upload(service.blobs, entry.file(role).read_bytes())
    wrong = replace(entry.manifest, insecure=says_insecure).to_json().decode()
    request = fleet_pb2.AddCircuitRequest(circuit_id="x", manifest_json=wrong)
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        await service.fleet.AddCircuit(request)
    assert refusal.fields == ("manifest_json.insecure",)
    right = entry.manifest.to_json().decode()
    added = await service.fleet.AddCircuit(
        fleet_pb2.AddCircuitRequest(circuit_id="x", manifest_json=right)
    )
    assert added.circuit.insecure != says_insecure


async def test_a_key_from_afar_that_is_none_is_refused(service: Running, data_dir: Path) -> None:
    entry = Catalogue(data_dir / "circuits").show("product")
    junk = b"no key"
    for role in entry.manifest.files:
        await upload(service.blobs, junk if role == "zkey" else entry.file(role).read_bytes())
    manifest = entry.manifest.to_json().decode()
    manifest = manifest.replace(entry.manifest.files["zkey"], blob_ref(junk).sha256.hex())
    with refused(Code.INVALID_ARGUMENT, "BAD_INPUT") as refusal:
        await service.fleet.AddCircuit(
            fleet_pb2.AddCircuitRequest(circuit_id="junk", manifest_json=manifest)
        )
    assert refusal.fields == ("manifest_json.files.zkey",)
