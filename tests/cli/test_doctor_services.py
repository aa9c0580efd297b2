"""What `doctor` says of circuits on disk and of services that do not answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from partita.circuits.catalogue import Catalogue, Entry
from partita.circuits.intake import CircuitSources, add_circuit
from partita.cli import doctor_services
from partita.cli.doctor_report import Status
from partita.cli.doctor_services import check_catalogue, check_prover_ports, check_scheduler
from partita.groth16.native import NativeBackend

ONE = Path("tests/vectors/edge/one-constraint-bn254")
NOBODY = "127.0.0.1:9"


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """A circuit in a catalogue of its own."""
    sources = CircuitSources(zkey=ONE / "circuit.zkey", wasm=ONE / "circuit.wasm")
    return add_circuit(Catalogue(tmp_path / "circuits"), "one", sources, NativeBackend())


def test_a_file_that_was_changed_by_hand_is_named(entry: Entry, tmp_path: Path) -> None:
    (fine,) = check_catalogue(tmp_path / "circuits", full=False)
    assert (fine.status, fine.found) == (Status.OK, "1 as their digests say")
    path = entry.file("zkey")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    (check,) = check_catalogue(tmp_path / "circuits", full=False)
    assert check.status is Status.FAIL
    assert str(path) in check.found
    path.unlink()
    (check,) = check_catalogue(tmp_path / "circuits", full=True)
    assert "No such file" in check.found or "zkey" in check.found


def test_a_manifest_that_contradicts_its_key_fails_by_name(entry: Entry, tmp_path: Path) -> None:
    edited = replace(entry.manifest, insecure=True).to_json()
    (entry.path / "manifest.json").write_bytes(edited)
    (check,) = check_catalogue(tmp_path / "circuits", full=False)
    assert (check.name, check.status) == ("circuit one", Status.FAIL)
    assert "says insecure, but zkey is of no development set-up" in check.found
    edited = replace(entry.manifest, n_public=2).to_json()
    (entry.path / "manifest.json").write_bytes(edited)
    (check,) = check_catalogue(tmp_path / "circuits", full=True)
    assert (check.name, check.status) == ("circuit one", Status.FAIL)
    assert "vk is of 1 public inputs, not of 2" in check.found


def test_large_files_are_read_only_when_asked_for(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_services, "_QUICK_BYTES", 0)
    path = entry.file("wasm")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b"\0")
    (quick,) = check_catalogue(tmp_path / "circuits", full=False)
    assert quick.status is Status.OK
    assert "large files not read: --full" in quick.found
    (full,) = check_catalogue(tmp_path / "circuits", full=True)
    assert full.status is Status.FAIL


def test_a_manifest_that_cannot_be_read_fails_by_name(entry: Entry, tmp_path: Path) -> None:
    manifest = entry.path / "manifest.json"
    manifest.chmod(0o600)
    manifest.write_text("{")
    (check,) = check_catalogue(tmp_path / "circuits", full=False)
    assert (check.name, check.status) == ("circuit one", Status.FAIL)


def test_no_circuits_are_no_fault(tmp_path: Path) -> None:
    assert check_catalogue(tmp_path / "none", full=True)[0].status is Status.OK


def test_a_scheduler_that_should_answer_and_does_not_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_services, "_PROBE_S", 0.2)
    assert check_scheduler(NOBODY, expected=True)[0].status is Status.FAIL
    (check,) = check_scheduler(NOBODY, expected=False)
    assert check.status is Status.WARN
    assert "partita up" in check.cure


def test_a_prover_whose_own_port_is_silent_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "scheduler.json").write_text("{}")
    (tmp_path / "run" / "gpu-3.json").write_text(json.dumps({"address": NOBODY}))
    (tmp_path / "run" / "broken.json").write_text("[]")
    broken, silent = check_prover_ports(tmp_path)
    assert (broken.name, broken.status) == ("own port of broken", Status.WARN)
    assert (silent.name, silent.status) == ("own port of gpu-3", Status.WARN)
    assert NOBODY in silent.found
