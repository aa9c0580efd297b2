"""Both images: built by `make images`, run read-only and as nobody, a job passed through them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system import docker_daemon
from tests.system.cluster import MERKLE, ROOT, Cluster, eventually
from tests.system.docker_daemon import BASE, RUST_BASE, Daemon

pytestmark = pytest.mark.slow

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAMS = ("scheduler", "prover")
NOBODY = "65532"
HARDENED = ("--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")

_STOP_S = 60
_BUILD_S = 3600.0


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags with which images are built on this machine."""
    settings = docker_daemon.settings_of_this_machine(tmp_path_factory.mktemp("settings"))
    return [*settings, "--build-arg", f"BASE={BASE}", "--build-arg", f"RUST_BASE={RUST_BASE}"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree from which all images of this module are built."""
    folder = tmp_path_factory.mktemp("tree")
    docker_daemon.snapshot(folder)
    return folder


@pytest.fixture(scope="module")
def daemon(tree: Path, flags: list[str]) -> Iterator[Daemon]:
    """A daemon that has both images."""
    if lack := docker_daemon.missing():
        pytest.skip(lack)
    with docker_daemon.running() as running:
        running.make_bases()
        docker = f"DOCKER={' '.join(running.command)}"
        built = subprocess.run(
            ["make", "images", docker, f"IMAGE_FLAGS={' '.join(flags)}", f"COMMIT={COMMIT}"],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_S,
        )
        assert built.returncode == 0, built.stderr
        yield running


def run_once(daemon: Daemon, image: str, *arguments: str) -> dict[str, Any]:
    """Run a container to its end and return the object that it prints."""
    found: dict[str, Any] = json.loads(daemon.docker("run", "--rm", *HARDENED, image, *arguments))
    return found


def inspect(daemon: Daemon, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(daemon.docker("inspect", name))
    return found[0]


class Containers:
    """The containers of one test, which share one data volume."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.volume = daemon.docker("volume", "create")
        self._started: list[str] = []

    @property
    def data_dir(self) -> Path:
        """The volume as the host sees it."""
        return Path(inspect(self.daemon, self.volume)["Mountpoint"])

    def command(self, image: str, mounted: Path, *arguments: str) -> str:
        """Run a command to its end, with a folder of the host at /given."""
        given = ("--volume", f"{mounted}:/given:ro")
        return self.daemon.docker("run", "--rm", *self._shared, *given, image, *arguments)

    def start(self, program: str, **settings: object) -> str:
        """Start a program's container and return its id."""
        variables: list[str] = []
        for key, value in settings.items():
            variables += ["--env", f"PARTITA_{program.upper()}__{key.upper()}={value}"]
        image = f"partita-{program}"
        container = self.daemon.docker("run", "--detach", *self._shared, *variables, image)
        self._started.append(container)
        return container

    def logs(self) -> str:
        """What all have written."""
        return "\n".join(
            self.daemon.docker("logs", "--tail", "40", name, check=False) for name in self._started
        )

    def close(self) -> None:
        """Remove everything."""
        for name in self._started:
            self.daemon.docker("rm", "--force", name)
        self.daemon.docker("volume", "rm", self.volume)

    @property
    def _shared(self) -> tuple[str, ...]:
        return (*HARDENED, "--volume", f"{self.volume}:/var/lib/partita")


@pytest.fixture
def containers(daemon: Daemon) -> Iterator[Containers]:
    """Containers and their volume; they are gone after the test."""
    made = Containers(daemon)
    try:
        yield made
        print(made.logs())  # pytest shows it if the test has failed
    finally:
        made.close()


def test_both_images_and_the_clone_have_one_fingerprint(daemon: Daemon, tree: Path) -> None:
    scheduler, prover = (
        run_once(daemon, f"partita-{program}", "fingerprint", "--json") for program in PROGRAMS
    )
    assert scheduler == prover
    assert scheduler["commit"] == COMMIT
    assert scheduler["native_sha256"]
    packages = f"{tree / 'services'}:{tree / 'clients' / 'python'}"
    printed = subprocess.run(
        [sys.executable, "-m", "partita.cli.main", "fingerprint", "--json"],
        env={**os.environ, "PYTHONPATH": packages},
        capture_output=True,
        text=True,
        check=True,
    )
    clone = json.loads(printed.stdout)
    for field in ("version", "code_sha256", "kernels_sha256"):
        assert scheduler[field] == clone[field], field


def test_an_extension_built_again_without_any_layer_has_the_same_digest(
    daemon: Daemon, tree: Path, flags: list[str]
) -> None:
    built = ("build", "--quiet", "--no-cache", "--target", "build")
    image = daemon.docker(*built, "--file", tree / "Dockerfile.prover", *flags, tree)
    again = json.loads(
        daemon.docker(
            *("run", "--rm", *HARDENED, "--entrypoint", "/opt/partita/bin/partita"),
            *(image, "fingerprint", "--json"),
        )
    )
    once = run_once(daemon, "partita-prover", "fingerprint", "--json")
    assert again["native_sha256"] == once["native_sha256"]
    assert again["code_sha256"] == once["code_sha256"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_image_runs_as_nobody_without_a_shell_and_has_no_compiler(
    daemon: Daemon, program: str
) -> None:
    config = inspect(daemon, f"partita-{program}")["Config"]
    assert config["User"] == f"{NOBODY}:{NOBODY}"
    assert config["Entrypoint"] == ["/opt/partita/bin/partita"]
    assert config["Cmd"] == [program]
    assert config["StopSignal"] == "SIGTERM"
    assert config["Volumes"] == {"/var/lib/partita": {}}
    assert config["Labels"]["org.opencontainers.image.revision"] == COMMIT
    look = "import json, shutil, sys; print(json.dumps([shutil.which(p) for p in sys.argv[1:]]))"
    unwanted = ("gcc", "cc", "ld", "rustc", "cargo", "make", "pip", "pip3")
    python = ("--entrypoint", "/opt/partita/bin/python", f"partita-{program}")
    found = daemon.docker("run", "--rm", *HARDENED, *python, "-c", look, *unwanted)
    assert json.loads(found) == [None] * len(unwanted)


def test_a_job_passes_through_both_images_read_only_and_as_nobody(
    daemon: Daemon, containers: Containers, cluster: Cluster, tmp_path: Path
) -> None:
    files = [f"--{role}=/given/circuit.{role}" for role in ("zkey", "wasm", "r1cs", "sym")]
    adding = ("circuits", "add", "merkle", *files)
    containers.command("partita-prover", MERKLE / "bn254", *adding)
    scheduler = containers.start(
        "scheduler",
        listen="127.0.0.1:0",
        prover_listen="127.0.0.1:0",
        metrics_listen="127.0.0.1:0",
        fingerprint_gate="exact",
    )
    cluster.data_dir = containers.data_dir
    written = cluster.data_dir / "run" / "scheduler.json"
    eventually(written.exists, "the scheduler's addresses")
    addresses = json.loads(written.read_text())
    cluster.address = addresses["listen"]
    schedulers = json.dumps([addresses["prover_listen"]])
    prover = containers.start(
        "prover", prover_id="image", schedulers=schedulers, listen="127.0.0.1:0"
    )
    cluster.until_offered("merkle", "image")

    inputs = tmp_path / "inputs"
    making = ("--curve", "bn254", "--count", "3", "--out", str(inputs))
    subprocess.run([sys.executable, str(MERKLE / "tree.py"), *making], cwd=ROOT, check=True)
    submitted = cluster.client.submit("merkle", sorted(inputs.iterdir()), "circom.json")
    partitions = cluster.completed(submitted.job.job_id, "merkle")
    assert [partition.prover_id for partition in partitions] == ["image"] * 3
    assert len({partition.statement for partition in partitions}) == 3

    for name in (prover, scheduler):
        state = inspect(daemon, name)
        assert state["HostConfig"]["ReadonlyRootfs"]
        status = Path(f"/proc/{state['State']['Pid']}/status").read_text().splitlines()
        (users,) = (line.split()[1:] for line in status if line.startswith("Uid:"))
        assert set(users) == {NOBODY}
    for name in (prover, scheduler):
        daemon.docker("stop", "--time", str(_STOP_S), name)
        assert inspect(daemon, name)["State"]["ExitCode"] == 0
