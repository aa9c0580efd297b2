"""The compiled circuits the tests read, and ways to change their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.circuits.container import read_container, write_container
from partita.groth16.keys import ProvingKey
from partita.groth16.reference import ReferenceBackend, ReferenceKey

ROOT = Path(__file__).resolve().parents[2]
EDGE = ROOT / "tests" / "vectors" / "edge"
HOSTILE = ROOT / "tests" / "vectors" / "hostile"


@dataclass(frozen=True)
class CircuitVector:
    """One folder of compiled files, with what `vectors.json` says of it."""

    path: Path
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.path.parent.name}-{self.path.name}" if self.is_example else self.path.name

    @property
    def is_example(self) -> bool:
        return self.path.parent != EDGE

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def text(self, name: str) -> str:
        return (self.path / name).read_text()


def _vectors() -> list[CircuitVector]:
    listed = json.loads((ROOT / "tests" / "vectors" / "vectors.json").read_text())
    return [CircuitVector(ROOT / folder, facts) for folder, facts in sorted(listed.items())]


ALL = _vectors()
SMALL = [vector for vector in ALL if not vector.is_example]


def edge(name: str, curve: str = "bn254") -> CircuitVector:
    """The edge circuit of this name."""
    return next(v for v in SMALL if v.path.name == f"{name}-{curve}")


def sections_of(data: bytes) -> dict[int, bytes]:
    """The sections of a container, in the order of the file."""
    found = read_container(
        "file", data, magic=data[:4], version=int.from_bytes(data[4:8], "little"), names={}
    )
    types = [t for t in range(64) if found.has(t)]
    return {
        t: bytes(found.section(t).data)
        for t in sorted(types, key=lambda t: found.section(t).offset)
    }


def with_sections(data: bytes, changed: Mapping[int, bytes | None]) -> bytes:
    """The container with some sections replaced, added, or (None) left out."""
    sections: dict[int, bytes | None] = {**sections_of(data), **changed}
    return write_container(
        magic=data[:4],
        version=int.from_bytes(data[4:8], "little"),
        sections=[(t, body) for t, body in sections.items() if body is not None],
    )


def patched(data: bytes, at: int, new: bytes) -> bytes:
    """The bytes with some replaced."""
    return data[:at] + new + data[at + len(new) :]


class ShapeBackend(ReferenceBackend):
    """The reference backend without its slow point checks, for tests of everything else."""

    def load(self, key: ProvingKey, *, check: bool) -> ReferenceKey:
        return super().load(key, check=False)
