"""The whole state as bytes, and its digest.

`dump` and `load` serve replay: a snapshot and the events after it reproduce a fault. A
snapshot belongs to one version of the code; it is not how the service persists (`records`).
`load` builds nothing but the core's own classes, so a snapshot from elsewhere cannot run code.

`digest` is over the canonical form: tables by key, sets sorted, heaps as the sets they are,
references as ids. Two cores with equal digests decide alike.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from partita.scheduler.core.errors import SnapshotRejected
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Check, Job, Lease, Partition, Prover, Session

_MAGIC = b"partita-core-2\n"
_OWN = "partita.scheduler.core."
_PLAIN = frozenset({("collections", "deque"), ("builtins", "set"), ("builtins", "frozenset")})

_VOLATILE = frozenset({"effects", "dirty_sessions", "dirty_jobs", "grants", "want_dispatch"})
_ORDER_ONLY = frozenset({"heap", "_heap", "_live", "_count", "ticket", "_ticket"})
_REMEMBERED = frozenset({"order", "shown"})
"""Of a lease: what saves work and decides nothing."""
_HOMES: dict[str, tuple[type, ...]] = {
    "jobs": (Job, Partition),
    "leases": (Lease,),
    "sessions": (Session,),
    "provers": (Prover,),
    "checks": (Check,),
}


def dump(state: State) -> bytes:
    """Return a snapshot of the state; what it remembers of Desired is made again."""
    for lease in state.leases.values():
        lease.order = None
    return _MAGIC + pickle.dumps(state, protocol=5)


class _OwnClassesOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_OWN) or (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise SnapshotRejected(f"snapshot names {module}.{name}, which is not the core's")


def load(data: bytes) -> State:
    """Return the state of a snapshot.

    Raises:
        SnapshotRejected: wrong magic, damaged, or it names a class that is not the core's.
    """
    if not data.startswith(_MAGIC):
        raise SnapshotRejected(f"snapshot starts with {data[:16]!r}, expected {_MAGIC!r}")
    try:
        state = _OwnClassesOnly(io.BytesIO(data[len(_MAGIC) :])).load()
    except SnapshotRejected:
        raise
    except (pickle.UnpicklingError, EOFError, AttributeError, ValueError, TypeError) as error:
        raise SnapshotRejected(f"snapshot is damaged: {error}") from error
    if not isinstance(state, State):
        raise SnapshotRejected(f"snapshot holds a {type(state).__name__}, expected a State")
    return state


def _reference(value: object) -> str | None:
    match value:
        case Job():
            return f"job:{value.job_id}"
        case Partition():
            return f"partition:{value.job.job_id}/{value.index}"
        case Lease():
            return f"lease:{value.lease_id}"
        case Session():
            return f"session:{value.number}"
        case Prover():
            return f"prover:{value.prover_id}"
        case Check():
            return f"check:{value.check_id}"
        case _:
            return None


def _canonical(value: object, homes: tuple[type, ...]) -> str:
    reference = _reference(value)
    if reference is not None and not isinstance(value, homes):
        return reference
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{reference or type(value).__name__}({','.join(_members(value, homes))})"
    if isinstance(value, dict):
        items = (f"{_canonical(k, ())}={_canonical(v, homes)}" for k, v in value.items())
        return "{" + ",".join(sorted(items)) + "}"
    if isinstance(value, set | frozenset):
        return "<" + ",".join(sorted(_canonical(item, ()) for item in value)) + ">"
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 64 else hashlib.sha256(value).hexdigest()
    if value is None or isinstance(value, str | int):
        return repr(value)
    if isinstance(value, list | tuple) or hasattr(value, "popleft"):
        return "[" + ",".join(_canonical(item, homes) for item in value) + "]"  # type: ignore[attr-defined]
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _members(value: Any, homes: tuple[type, ...]) -> Iterator[str]:
    for field in fields(value):
        if field.name in _ORDER_ONLY or (isinstance(value, Partition) and field.name == "job"):
            continue
        if isinstance(value, Lease) and field.name in _REMEMBERED:
            continue
        yield f"{field.name}={_canonical(getattr(value, field.name), homes)}"


def digest(state: State) -> bytes:
    """Return SHA-256 over the canonical form of the tables. Cost: everything, once."""
    sha = hashlib.sha256()
    for field in fields(state):
        if field.name in _VOLATILE:
            continue
        homes = _HOMES.get(field.name, ())
        sha.update(f"{field.name}={_canonical(getattr(state, field.name), homes)};".encode())
    return sha.digest()
