"""Checks of what runs: the scheduler, its provers, and the circuits they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from partita.circuits.catalogue import Catalogue, Entry
from partita.circuits.durable import sha256_of
from partita.cli.doctor_report import Check, fail, ok, warn
from partita.cli.fingerprint_fleet import Running, difference_line, running_builds, stale_line
from partita.service.fingerprint import GATE_FIELDS, differences, fingerprint
from partita.v1 import fleet_pb2

_PROBE_S: Final = 3.0
_QUICK_BYTES: Final = 16 << 20
_START = "start one: `partita up`, `partita scheduler`"


def check_catalogue(folder: Path, *, full: bool) -> list[Check]:
    """Compare the circuits' files with their digests, and their manifests with their keys.

    Args:
        folder: DATA_DIR/circuits.
        full: read every file; otherwise only those of at most 16 MiB, and look for the others.
    """
    state = Catalogue(folder).scan()
    wrong = [
        fail(f"circuit {name}", why, f"`partita circuits remove {name}` and add it again")
        for name, why in sorted(state.broken.items())
    ]
    skipped = 0
    for name, entry in sorted(state.circuits.items()):
        altered, unread = _altered(entry, full=full)
        skipped += unread
        cure = f"put the right file back, or `partita circuits remove {name}` and add it again"
        found = altered or entry.contradictions()
        wrong += [fail(f"circuit {name}", text, cure) for text in found]
    if wrong:
        return wrong
    text = f"{len(state.circuits)} as their digests say"
    if not state.circuits:
        text = "none yet: `partita circuits add`"
    elif skipped:
        text += f"; {skipped} large files not read: --full reads them"
    return [ok("circuits", text)]


def _altered(entry: Entry, *, full: bool) -> tuple[list[str], int]:
    """What is wrong with an entry's files, and how many were not read."""
    wrong: list[str] = []
    unread = 0
    for role, expected in sorted(entry.manifest.files.items()):
        path = entry.file(role)
        try:
            if not full and path.stat().st_size > _QUICK_BYTES:
                unread += 1
                continue
            found = sha256_of(path)
        except OSError as error:
            wrong.append(f"{path}: {error.strerror}")
            continue
        if found != expected:
            wrong.append(f"{path} has SHA-256 {found[:12]}…, its manifest says {expected[:12]}…")
    return wrong, unread


def check_scheduler(address: str, *, expected: bool) -> list[Check]:
    """Ask a scheduler and look at its fleet.

    Args:
        address: for clients.
        expected: whether one should be there: it was named, or wrote down that it runs.
    """
    from partita_client import Client, PartitaError, RetryPolicy

    with Client(address, retry=RetryPolicy(give_up_after_s=_PROBE_S)) as client:
        try:
            info, fleet = client.server_info(), client.fleet()
        except PartitaError as error:
            text = f"nobody answers at {address}"
            if not expected:
                return [warn("scheduler", text, _START)]
            cure = f"look at its log; is the address right, and no firewall between? {error.reason}"
            return [fail("scheduler", text, cure.strip())]
    processes = running_builds(info, fleet)
    checks = [ok("scheduler", f"answers at {address}, epoch {info.epoch}")]
    for process in processes:
        checks += _check_build(process)
    return checks + [_check_view(view) for view in fleet.provers]


def _check_build(process: Running) -> list[Check]:
    here = fingerprint("native")
    name = f"build of {process.process}"
    if process.stale:
        _, _, text = stale_line(process.process).partition(": ")
        text, _, cure = text.partition("; ")
        return [warn(name, text, cure)]
    found = differences(here, process.build, GATE_FIELDS)
    if not found:
        return [ok(name, "the one installed here")]
    lines = [difference_line(process.process, each).partition(": ")[2] for each in found]
    return [warn(name, "; ".join(lines), "install the same build everywhere and start it again")]


def _check_view(view: fleet_pb2.ProverView) -> Check:
    """What the scheduler says of a prover."""
    name = f"prover {view.hello.prover_id}"
    if not view.connected:
        cure = "start it again, or look at its log for why it cannot connect"
        return warn(name, "is not connected", cure)
    unusable = [
        f"{offer.circuit_id}: {offer.unusable_reason}"
        for offer in view.hello.offers
        if offer.unusable_reason
    ]
    why = view.actual.reason or view.reason
    text = "; ".join([*([why] if why else []), *unusable])
    if text:
        return warn(name, text, "`partita fleet` shows it; its log says more")
    return ok(name, f"connected, offers {len(view.hello.offers)} circuits")


def check_prover_ports(data_dir: Path) -> list[Check]:
    """Ask the health of each prover that a data directory's run files name."""
    checks: list[Check] = []
    for path in sorted((data_dir / "run").glob("*.json")):
        if path.name == "scheduler.json":
            continue
        try:
            address = str(json.loads(path.read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError):
            cure = f"remove {path}"
            checks.append(warn(f"own port of {path.stem}", f"{path} cannot be read", cure))
            continue
        checks.append(_check_health(f"own port of {path.stem}", address, path))
    return checks


def _check_health(name: str, address: str, path: Path) -> Check:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    from partita.service.grpcio import channel_options

    with grpc.insecure_channel(address, channel_options()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=_PROBE_S)
        except grpc.RpcError:
            cure = f"start it again; if it was removed for good, remove {path}"
            return warn(name, f"nobody answers at {address}", cure)
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return ok(name, f"serves at {address}")
    return warn(name, f"answers at {address}, but takes no work", "it drains, or its log says why")
