"""What is installed and running in this process, so that two processes can be compared.

The digest over the code is over the (path, content) rows of the installed Python files of the
`partita` package, sorted; two checkouts of one commit have the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grpc

import partita


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The identity of one running build; digests are SHA-256, empty where there is nothing."""

    version: str
    code_sha256: bytes
    native_sha256: bytes
    backend: str
    device: str
    runtime: str


@cache
def code_sha256() -> bytes:
    """Return the digest over the installed Python files of the package."""
    root = Path(partita.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


@cache
def native_sha256() -> bytes:
    """Return the digest of the native extension, empty if it is not installed."""
    spec = importlib.util.find_spec("partita_native")
    if spec is None or spec.origin is None:
        return b""
    root = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in sorted(root.glob("*.so")):
        digest.update(path.read_bytes())
    return digest.digest()


def fingerprint(backend: str = "", device: str = "") -> Fingerprint:
    """Return the fingerprint of this process."""
    return Fingerprint(
        version=importlib.metadata.version("partita"),
        code_sha256=code_sha256(),
        native_sha256=native_sha256(),
        backend=backend,
        device=device or platform.machine(),
        runtime=f"python {platform.python_version()} grpcio {grpc.__version__}",
    )
