"""A Docker daemon for one test run, and base images made without any registry.

It runs as root on this machine with a data root, a socket and containers of its own, beside any
other daemon, without touching the machine's network: no bridge, no iptables, host network only.
What is slow to make (the base images, layers) stays in `.build/images` for the next run.

Addresses and certificates are those that this machine uses: the Debian mirror of apt, the settings
of pip and Cargo, the proxy of the environment.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.cluster import ROOT, eventually

KEPT = ROOT / ".build" / "images"
RELEASE = "bookworm"
BASE = f"localhost/debian:{RELEASE}"
RUST_BASE = f"localhost/rust:{RELEASE}"

_START_S = 60.0
_STOP_S = 120.0
_BUILD_S = 3600.0
_PROGRAMS = {
    "dockerd": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "rustc": "a Rust toolchain",
}
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host")
_RUST_FROM_HERE = f"FROM {BASE}\nCOPY bin /usr/local/bin\nCOPY lib /usr/local/lib\n"


def missing() -> str:
    """Say what this machine lacks for images; "" if it has everything."""
    if os.geteuid() != 0:
        return "a Docker daemon of its own needs root"
    lacks = [f"{name} ({where})" for name, where in _PROGRAMS.items() if not shutil.which(name)]
    if lacks:
        return f"not installed: {', '.join(lacks)}"
    if _client() is None:
        return "no docker command of the daemon's version (Debian's docker.io has both)"
    if not _mirror():
        return "apt knows no Debian mirror: run apt-get update"
    return ""


class Daemon:
    """A running daemon.

    Attributes:
        command: the docker command line that talks to it.
    """

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def docker(self, *arguments: str | Path, stdin: str = "", check: bool = True) -> str:
        """Run a docker command and return its output without the last newline."""
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_S,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"docker {arguments[0]}: {done.stderr}\n{done.stdout}")
        return done.stdout.rstrip("\n")

    def has(self, image: str) -> bool:
        """Whether an image is there."""
        return bool(self.docker("image", "ls", "--quiet", image))

    def make_bases(self) -> None:
        """Have `BASE`, a least Debian, and `RUST_BASE`, the same with this machine's Rust."""
        archive = KEPT / f"{RELEASE}.tar"
        if not archive.exists():
            _bootstrap(archive)
        if not self.has(BASE):
            self.docker("import", archive, BASE)
        version = _output("rustc", "--version")
        label = '{{index .Config.Labels "rustc"}}'
        if not self.has(RUST_BASE) or version != self.docker(
            "image", "inspect", "--format", label, RUST_BASE
        ):
            sysroot = _output("rustc", "--print", "sysroot")
            build = ("build", "--quiet", "--tag", RUST_BASE, "--label", f"rustc={version}")
            self.docker(*build, "--file", "-", sysroot, stdin=_RUST_FROM_HERE)


@contextmanager
def running() -> Iterator[Daemon]:
    """Run a daemon; it and all its containers have ended when the block is left."""
    KEPT.mkdir(parents=True, exist_ok=True)
    client = _client()
    assert client is not None
    with tempfile.TemporaryDirectory(prefix="partita-docker-") as folder:
        socket = f"unix://{folder}/docker.sock"
        daemon = Daemon([client, "--host", socket])
        log = KEPT / "dockerd.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *("dockerd", "--host", socket, "--data-root", str(KEPT / "docker")),
                    *("--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
                    *("--storage-driver", "overlay2", "--bridge=none"),
                    *("--iptables=false", "--ip6tables=false"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it
            )
        try:

            def answers() -> bool:
                assert process.poll() is None, f"dockerd has ended:\n{log.read_text()}"
                return bool(daemon.docker("version", check=False).count("Server:"))

            eventually(answers, "dockerd answers", _START_S)
            yield daemon
            daemon.docker("image", "prune", "--force")
        finally:
            process.send_signal(signal.SIGTERM)  # it stops its containers and its containerd
            process.wait(_STOP_S)
            _unmount(folder, str(KEPT / "docker"))


def settings_of_this_machine(folder: Path) -> list[str]:
    """Return the flags of `docker build` with which a build reaches what this machine reaches.

    Args:
        folder: for files that the flags name.
    """
    flags = ["--network", "host"]
    if _CERTIFICATES.exists():
        flags += ["--secret", f"id=ca,src={_CERTIFICATES}"]
    pip = folder / "pip.conf"
    pip.write_text("[global]\n" + "".join(f"{row}\n" for row in _pip_settings()))
    flags += ["--secret", f"id=pip,src={pip}"]
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for cargo in (home / "config.toml", home / "config"):
        if cargo.exists():
            flags += ["--secret", f"id=cargo,src={cargo}"]
            break
    for name in (*_PROXIES, *map(str.upper, _PROXIES)):
        flags += ["--build-arg", name] if name in os.environ else []
    return flags


def snapshot(folder: Path) -> None:
    """Copy the tree as it is now, without what git ignores."""
    listed = _output("git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def _bootstrap(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rootfs-", dir=KEPT) as root:
        made = archive.with_suffix(".part")
        _output("debootstrap", "--variant=minbase", RELEASE, root, _mirror())
        _output("tar", "--numeric-owner", "-C", root, "-cf", str(made), ".")
        made.rename(archive)


def _unmount(*folders: str) -> None:
    """Unmount what a daemon leaves, its network namespace for one."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mounted in reversed(mounts):
        if any(Path(mounted).is_relative_to(folder) for folder in folders):
            _output("umount", mounted)


def _mirror() -> str:
    """The mirror from which apt has Debian, without what follows the host's folder."""
    chosen = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", *chosen],
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout.partition("\n")[0]


def _client() -> str | None:
    """The docker command that came with the daemon: one of another age cannot drive its builds."""
    daemon = _version("dockerd")
    for folder in os.get_exec_path():
        path = Path(folder) / "docker"
        if path.exists() and daemon and _version(str(path)) == daemon:
            return str(path)
    return None


def _version(program: str) -> str:
    try:
        return _output(program, "--version").partition(",")[0]
    except (OSError, AssertionError):
        return ""


def _pip_settings() -> list[str]:
    rows = _output(sys.executable, "-m", "pip", "config", "list").splitlines()
    split = (row.partition("=") for row in rows)
    found = {key.rpartition(".")[2]: value.strip("'\"") for key, _, value in split}
    return [f"{key} = {found[key]}" for key in _PIP_SETTINGS if key in found]


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BUILD_S)
    assert done.returncode == 0, f"{' '.join(command[:2])}: {done.stderr}{done.stdout}"
    return done.stdout.strip()
