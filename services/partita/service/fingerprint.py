"""What is installed and running in this process, so that two processes can be compared.

Digests are over the contents of the installed files, so a wheel and a checkout of one commit have
the same: code over the (path, content) rows of the package's Python files, kernels over those of
its kernel sources, native over the extension. The commit is what the wheel's build wrote into the
package; in a checkout git is asked. It is empty where nobody knows it.

`RunningBuild` is a process's own: read once when it starts, and looked at again while it runs,
because a process goes on with the code it has loaded when its files are replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import partita
from partita.service import logs

STALE_FEATURE = "stale-build"
"""Shown among the features of a process whose files have changed since it started."""

COMMIT_FILE = "commit.txt"
"""In the package, written when a wheel is built; not part of any digest."""

GATE_FIELDS = ("version", "code_sha256", "kernels_sha256", "native_sha256", "runtime")
"""What `fingerprint_gate = "exact"` compares: what was built and what it runs on in software.
Backend, device and driver differ within a right fleet; the commit is told by the digests."""

CPU_FEATURES = ("adx", "avx2", "avx512f", "avx512ifma", "bmi2", "sha_ni", "asimd", "sha2")
"""Those that the arithmetic here can use, as /proc/cpuinfo writes them."""

_RUNTIME = ("grpcio", "protobuf", "numpy")
_MAX_TEXT_CHARS = 256
_SHORT_DIGITS = 12
_NAMED_FILES = 5

_Stamp = tuple[int, int, int]

_log = logs.get("build")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The identity of one running build; digests are SHA-256, empty where there is nothing."""

    version: str = ""
    commit: str = ""
    code_sha256: bytes = b""
    kernels_sha256: bytes = b""
    native_sha256: bytes = b""
    backend: str = ""
    device: str = ""
    driver: str = ""
    runtime: str = ""

    @classmethod
    def of(cls, other: object) -> Fingerprint:
        """Return the fingerprint that any record with the same field names holds."""
        return cls(**{name: getattr(other, name) for name in FIELDS})

    def values(self) -> dict[str, str | bytes]:
        """Return the fields by name, as the wire's message takes them."""
        return {name: getattr(self, name) for name in FIELDS}

    def as_object(self) -> dict[str, str]:
        """Return the fields as text, digests in hex: for JSON, logs and reports."""
        return {name: _text(value) for name, value in self.values().items()}

    def short(self) -> str:
        """Return one line that tells builds apart: "0.1.0 code 90fe1bc2… native 0c11… native"."""
        parts = [self.version]
        for name in ("code", "kernels", "native"):
            digest = getattr(self, f"{name}_sha256")
            parts += [name, digest.hex()[:_SHORT_DIGITS]] if digest else []
        return " ".join([*parts, self.backend]).strip()


FIELDS = tuple(field.name for field in fields(Fingerprint))


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in which two fingerprints differ, as text."""

    field: str
    here: str
    there: str

    def __str__(self) -> str:
        return f"{self.field} is {self.here or 'empty'} here and {self.there or 'empty'} there"


def differences(
    here: Fingerprint, there: Fingerprint, names: Iterable[str] = FIELDS
) -> list[Difference]:
    """Return the fields that differ; a commit that one side does not know is no difference."""
    found: list[Difference] = []
    for name in names:
        mine, theirs = _text(getattr(here, name)), _text(getattr(there, name))
        if mine != theirs and not (name == "commit" and not (mine and theirs)):
            found.append(Difference(name, mine, theirs))
    return found


class Build:
    """The files of a build as they were when this object was made.

    Args:
        package: folder of the package `partita`.
        native: folder of the native extension; None = not installed.

    Attributes:
        code_sha256, kernels_sha256, native_sha256: see the module; empty where nothing is.
    """

    def __init__(self, package: Path, native: Path | None) -> None:
        self._package = package
        self._native = native
        self._known: dict[str, tuple[_Stamp, bytes]] = {}
        for name, path in self._files():
            with suppress(FileNotFoundError):  # an editor's temporary file has gone again
                self._known[name] = (_stamp(path), _sha256(path))
        self.code_sha256 = self._digest(".py")
        self.kernels_sha256 = self._digest(".cu", ".cuh")
        self.native_sha256 = self._native_digest()

    def changed(self) -> tuple[str, ...]:
        """Return the names of files that are other, new or gone on disk; looks at stamps first."""
        found: dict[str, Path] = dict(self._files())
        different = [name for name in self._known if name not in found]
        for name, path in found.items():
            if name not in self._known:
                different.append(name)
                continue
            stamp, digest = self._known[name]
            try:
                now = _stamp(path)
                if now == stamp:
                    continue
                if _sha256(path) == digest:
                    self._known[name] = (now, digest)
                    continue
            except FileNotFoundError:
                pass
            different.append(name)
        return tuple(sorted(different))

    def _files(self) -> Iterator[tuple[str, Path]]:
        for suffix in ("*.py", "*.cu", "*.cuh"):
            for path in sorted(self._package.rglob(suffix)):
                yield path.relative_to(self._package).as_posix(), path
        if self._native is not None:
            for path in sorted(self._native.glob("*.so")):
                yield f"{self._native.name}/{path.name}", path

    def _digest(self, *suffixes: str) -> bytes:
        names = sorted(name for name in self._known if name.endswith(suffixes))
        if not names:
            return b""
        digest = hashlib.sha256()
        for name in names:
            digest.update(name.encode() + b"\0" + self._known[name][1])
        return digest.digest()

    def _native_digest(self) -> bytes:
        found = [known[1] for name, known in sorted(self._known.items()) if name.endswith(".so")]
        if len(found) > 1:
            return hashlib.sha256(b"".join(found)).digest()
        return b"".join(found)  # the digest that sha256sum prints, or nothing


class RunningBuild:
    """The fingerprint of this process, and which of its files have changed since it started.

    Args:
        backend: what computes here.
        build: the files; default: those installed, as they were at the process's first look.

    Attributes:
        fingerprint: taken when this object was made.
        stale: the files that differ on disk now, as of the last look of `watch`.
    """

    def __init__(self, backend: str = "", build: Build | None = None) -> None:
        self._build = build or installed()
        self.fingerprint = fingerprint(backend, build=self._build)
        self.stale: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """What to add to the features that this process announces."""
        return (STALE_FEATURE,) if self.stale else ()

    async def watch(self, interval_s: float, changed: Callable[[], None] = lambda: None) -> None:
        """Look at the files again and again; `changed` is called when `stale` has changed."""
        while True:
            await asyncio.sleep(interval_s)
            stale = await asyncio.to_thread(self._build.changed)
            if stale == self.stale:
                continue
            self.stale = stale
            if stale:
                _log.warning(
                    "build.stale",
                    files=list(stale[:_NAMED_FILES]),
                    n_files=len(stale),
                    cure="its files have changed since this process started: start it again",
                )
            else:
                _log.info("build.fresh", why="the files are again those that run")
            changed()


@cache
def installed() -> Build:
    """Return the installed build, read once in the life of the process."""
    spec = importlib.util.find_spec("partita_native")
    native = None if spec is None or spec.origin is None else Path(spec.origin).parent
    return Build(Path(partita.__file__).parent, native)


def fingerprint(
    backend: str = "", device: str = "", driver: str = "", *, build: Build | None = None
) -> Fingerprint:
    """Return the fingerprint of this process.

    Args:
        backend: what computes.
        device: on what; default: the processor.
        driver: of the device.
        build: the files; default: the installed ones.
    """
    files = build or installed()
    return Fingerprint(
        version=_version("partita"),
        commit=commit(Path(partita.__file__).parent),
        code_sha256=files.code_sha256,
        kernels_sha256=files.kernels_sha256,
        native_sha256=files.native_sha256,
        backend=backend,
        device=_line(device or processor()),
        driver=_line(driver),
        runtime=_runtime(),
    )


@cache
def commit(package: Path) -> str:
    """Return the commit of a package's files: git's in a checkout, else what its wheel says."""
    root = package.parent.parent
    if package == root / "services" / "partita" and (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.strip()
    try:
        return _line((package / COMMIT_FILE).read_text())
    except OSError:
        return ""


def processor(proc: Path = Path("/proc")) -> str:
    """Return model, count and useful features of the processor, on one line."""
    found: dict[str, str] = {}
    try:
        for row in (proc / "cpuinfo").read_text().splitlines():
            key, _, value = row.partition(":")
            found.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    # Arm's cpuinfo has numbers instead of a name.
    arm = f"implementer {found.get('CPU implementer')} part {found.get('CPU part')}"
    model = found.get("model name") or (arm if "CPU part" in found else "processor")
    flags = (found.get("flags") or found.get("Features") or "").split()
    features = " ".join(name for name in CPU_FEATURES if name in flags)
    return f"{platform.machine()} {model}, {os.cpu_count()} cpus" + (features and f", {features}")


def _runtime() -> str:
    versions = (f"{name} {_version(name)}" for name in _RUNTIME if _version(name))
    return " ".join([f"python {platform.python_version()}", *versions])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _line(text: str) -> str:
    """One printable line within the wire's bound."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:_MAX_TEXT_CHARS]


def _text(value: str | bytes) -> str:
    return value.hex() if isinstance(value, bytes) else value


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _sha256(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
