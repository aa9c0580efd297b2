"""A scheduler and provers as processes of their own, for one benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita.cli import child
from partita.service.fingerprint import GATE_FIELDS, Fingerprint, differences, fingerprint
from partita_client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from partita.v1 import fleet_pb2

START_S = 120.0
_STOP_S = 60.0
_POLL_S = 0.02
_CHILD = Path(child.__file__)
_METERED = "benchmarks.metered_scheduler"


class Services:
    """What runs on one data directory, at loopback ports that the system chooses.

    Args:
        data_dir: of all of them; the catalogue is in it.

    Attributes:
        address, prover_address: of the scheduler, once it is started.
        scheduler_pid: its process.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.address = ""
        self.prover_address = ""
        self.scheduler_pid = 0
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start_scheduler(self, *arguments: str, **settings: object) -> None:
        """Start the scheduler and wait until it answers.

        Args:
            arguments: of `metered_scheduler`.
            settings: keys of its configuration.
        """
        values = {
            "data_dir": self.data_dir,
            "listen": "127.0.0.1:0",
            "prover_listen": "127.0.0.1:0",
            "metrics_listen": "",
            "log_level": "warning",
            **settings,
        }
        process = self._launch(
            "scheduler", ["-m", _METERED, *arguments], _variables("SCHEDULER", values)
        )
        self.scheduler_pid = process.pid
        found = self._written("scheduler", process)
        self.address, self.prover_address = found["listen"], found["prover_listen"]
        with Client(self.address) as client:
            info = client.server_info(give_up_after_s=START_S)
        _compare("scheduler", Fingerprint.of(info.fingerprint))

    def start_prover(self, prover_id: str, circuit_id: str, **settings: object) -> int:
        """Start a prover and wait until it offers a circuit; returns its process."""
        values = {
            "data_dir": self.data_dir,
            "prover_id": prover_id,
            "schedulers": json.dumps([self.prover_address]),
            "listen": "127.0.0.1:0",
            "log_level": "warning",
            **settings,
        }
        process = self._launch(prover_id, ["-m", "partita.prover"], _variables("PROVER", values))
        end_s = time.monotonic() + START_S
        with Client(self.address) as client:
            while (view := _offering(client, prover_id, circuit_id)) is None:
                self._check(prover_id, process, end_s)
                time.sleep(_POLL_S)
        _compare(prover_id, Fingerprint.of(view.hello.fingerprint))
        return process.pid

    def stop(self) -> None:
        """Stop everything, the newest first."""
        for _, process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _launch(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PARTITA_")}
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-IS", str(_CHILD), str(os.getpid())),
                    *(sys.executable, *arguments),
                ],
                env={**kept, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append((name, process))
        return process

    def _written(self, name: str, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """The addresses that a program writes when it is ready."""
        path = self.data_dir / "run" / f"{name}.json"
        end_s = time.monotonic() + START_S
        while True:
            if path.exists():
                found: dict[str, Any] = json.loads(path.read_text())
                if found["pid"] == process.pid:
                    return found
            self._check(name, process, end_s)
            time.sleep(_POLL_S)

    def _check(self, name: str, process: subprocess.Popen[bytes], end_s: float) -> None:
        if process.poll() is not None or time.monotonic() > end_s:
            said = self._log(name).read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{name} is not ready (exit code {process.poll()}):\n{said}")

    def _log(self, name: str) -> Path:
        return self.data_dir / f"{name}.log"


@contextmanager
def services_in(data_dir: Path) -> Iterator[Services]:
    """Services that end with the block."""
    services = Services(data_dir)
    try:
        yield services
    finally:
        services.stop()


def status_bytes(pid: int, name: str) -> int:
    """A value of /proc/PID/status in bytes: VmRSS, VmHWM, RssAnon."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise LookupError(f"/proc/{pid}/status has no {name}")


def forget_peak(pid: int) -> None:
    """Let VmHWM begin again at the present VmRSS."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _offering(client: Client, prover_id: str, circuit_id: str) -> fleet_pb2.ProverView | None:
    """The view of a connected prover that offers a circuit, None while there is none."""
    for view in client.fleet().provers:
        offers = [o.circuit_id for o in view.hello.offers if not o.unusable_reason]
        if view.hello.prover_id == prover_id and view.connected and circuit_id in offers:
            return view
    return None


def _compare(name: str, build: Fingerprint) -> None:
    """Say in what a service that is measured differs from the build that the report names."""
    for difference in differences(fingerprint("native"), build, GATE_FIELDS):
        print(f"{name} is another build than this benchmark: {difference}", flush=True)


def _variables(program: str, values: Mapping[str, object]) -> dict[str, str]:
    return {f"PARTITA_{program}__{key.upper()}": str(value) for key, value in values.items()}
