"""What a prover says and is told: wire messages as core values and back, every bound checked.

A message that breaks a bound is refused with BAD_INPUT and the path of the field, before the core
sees any of it. Enumeration values that are not known count as unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from partita.scheduler.api.status import bad
from partita.scheduler.api.translate import bytes_message, duration, member, ns_of
from partita.scheduler.core.model import (
    Actual,
    Bytes,
    CircuitOffer,
    Condition,
    Desired,
    Failure,
    FailureKind,
    Fingerprint,
    HeldKey,
    HeldLease,
    Hello,
    KeyShown,
    LeaseOrder,
    Phase,
    Proved,
    Timings,
)
from partita.v1 import dispatch_pb2, types_pb2

CONTRACT = 1
"""The contract revision that this scheduler speaks."""

DIGEST_BYTES = 32
MAX_LEASES = 256
MAX_KEYS = 256
MAX_OFFERS = 1024
MAX_LABELS = 16
MAX_FEATURES = 64
MAX_ID_CHARS = 128
MAX_NAME_CHARS = 64
MAX_TEXT_CHARS = 4096
MAX_PROOF_BYTES = 1024
MAX_STATEMENT_BYTES = 1 << 20
MAX_AMOUNT = 1 << 60
MAX_DURATION_NS = 1 << 62


def hello_of(message: dispatch_pb2.Hello) -> Hello:
    """Return the Hello of a message.

    Raises:
        RpcError: BAD_INPUT, with the field.
    """
    _identifier("hello.prover_id", message.prover_id)
    _identifier("hello.instance_id", message.instance_id)
    _count("hello.features", len(message.features), MAX_FEATURES)
    _count("hello.offers", len(message.offers), MAX_OFFERS)
    _count("hello.labels", len(message.labels), MAX_LABELS)
    if not 1 <= message.max_leases <= MAX_LEASES:
        raise bad("hello.max_leases", f"{message.max_leases}: must be 1 to {MAX_LEASES}")
    if message.express_leases > MAX_LEASES:
        raise bad("hello.express_leases", f"{message.express_leases}: at most {MAX_LEASES}")
    if message.highest_epoch >= MAX_AMOUNT:
        raise bad("hello.highest_epoch", f"{message.highest_epoch}: not an epoch")
    offers = tuple(
        _offer(f"hello.offers[{index}]", offer) for index, offer in enumerate(message.offers)
    )
    seen: set[bytes] = set()
    for index, offer in enumerate(offers):
        if offer.manifest_sha256 in seen:
            raise bad(f"hello.offers[{index}].manifest_sha256", "is offered twice")
        seen.add(offer.manifest_sha256)
    return Hello(
        prover_id=message.prover_id,
        instance_id=message.instance_id,
        total=_bytes("hello.total", message.total),
        max_leases=message.max_leases,
        express_leases=message.express_leases,
        highest_epoch=message.highest_epoch,
        offers=offers,
        features=tuple(_name("hello.features", name) for name in message.features),
        fingerprint=_fingerprint(message.fingerprint),
        labels=tuple(
            (_name("hello.labels", key), _text("hello.labels", value))
            for key, value in sorted(message.labels.items())
        ),
        contract_min=message.contract_min,
        contract_max=message.contract_max,
    )


def negotiate(message: dispatch_pb2.Hello) -> int | None:
    """Return the contract revision that both sides speak, None if there is none."""
    return CONTRACT if message.contract_min <= CONTRACT <= message.contract_max else None


class ActualReader:
    """Reads the Actuals of one stream. What a later one repeats of its leases is not read again.

    Holds the leases of the last Actual, nothing more.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[dispatch_pb2.HeldLease, HeldLease]] = {}

    def read(self, message: dispatch_pb2.Actual) -> Actual:
        """Return the Actual of a message; raises as `actual_of` does."""
        actual = actual_of(message, self._last)
        self._last = {
            lease.lease_id: (source, lease)
            for source, lease in zip(message.leases, actual.leases, strict=True)
        }
        return actual


def actual_of(
    message: dispatch_pb2.Actual,
    known: Mapping[str, tuple[dispatch_pb2.HeldLease, HeldLease]] = MappingProxyType({}),
) -> Actual:
    """Return the Actual of a message.

    Args:
        message: as it came.
        known: leases that were read before by lease_id, each with its message.

    Raises:
        RpcError: BAD_INPUT, with the field.
    """
    _count("actual.leases", len(message.leases), MAX_LEASES)
    _count("actual.keys", len(message.keys), MAX_KEYS)
    if message.applied >= MAX_AMOUNT:
        raise bad("actual.applied", f"{message.applied}: not a revision")
    leases = tuple(
        before[1]
        if (before := known.get(lease.lease_id)) is not None and before[0] == lease
        else _held_lease(f"actual.leases[{index}]", lease)
        for index, lease in enumerate(message.leases)
    )
    if len({lease.lease_id for lease in leases}) != len(leases):
        raise bad("actual.leases", "a lease_id occurs twice")
    keys = tuple(_held_key(f"actual.keys[{index}]", key) for index, key in enumerate(message.keys))
    if len({key.manifest_sha256 for key in keys}) != len(keys):
        raise bad("actual.keys", "a manifest_sha256 occurs twice")
    return Actual(
        applied=message.applied,
        condition=member(Condition, message.condition, Condition.UNSPECIFIED),
        reason=_text("actual.reason", message.reason),
        leases=leases,
        keys=keys,
        measured=_bytes("actual.measured", message.measured),
    )


class DesiredWriter:
    """Writes the Desireds of one stream. A lease that a later one repeats is not translated again.

    Holds the leases of the last Desired, nothing more.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[LeaseOrder, dispatch_pb2.Lease]] = {}

    def message(self, desired: Desired) -> dispatch_pb2.Desired:
        """Return a Desired."""
        before, self._last = self._last, {}
        leases = []
        for order in desired.leases:
            known = before.get(order.lease_id)
            if known is None or known[0] is not order:
                known = (order, _lease(order, inputs=True))
            self._last[order.lease_id] = known
            leases.append(known[1])
        return _desired(desired, leases)


def desired_message(desired: Desired) -> dispatch_pb2.Desired:
    """Return a Desired for others than its prover: without inline inputs."""
    return _desired(desired, [_lease(order, inputs=False) for order in desired.leases])


def _desired(desired: Desired, leases: list[dispatch_pb2.Lease]) -> dispatch_pb2.Desired:
    return dispatch_pb2.Desired(
        epoch=desired.epoch,
        revision=desired.revision,
        leases=leases,
        keys=desired.keys,
        drain=desired.drain,
        catalogue_revision=desired.catalogue_revision,
    )


def _lease(order: LeaseOrder, *, inputs: bool) -> dispatch_pb2.Lease:
    return dispatch_pb2.Lease(
        lease_id=order.lease_id,
        job_id=order.job_id,
        partition_index=order.partition_index,
        attempt=order.attempt,
        circuit_id=order.circuit_id,
        manifest_sha256=order.manifest_sha256,
        input=types_pb2.BlobRef(sha256=order.input.sha256, size_bytes=order.input.size_bytes),
        input_format=order.input_format,
        priority=int(order.priority),  # type: ignore[arg-type]
        job_seq=order.job_seq,
        reserved=bytes_message(order.reserved),
        timeout=duration(order.timeout_ns),
        diagnose=order.diagnose,
        statement_sha256=order.statement_sha256,
        inline=(order.inline or b"") if inputs else b"",
    )


def _held_lease(path: str, message: dispatch_pb2.HeldLease) -> HeldLease:
    outcome: Proved | Failure | None = None
    match message.WhichOneof("outcome"):
        case "proved":
            outcome = _proved(f"{path}.proved", message.proved)
        case "failure":
            outcome = _failure(f"{path}.failure", message.failure)
    return HeldLease(
        lease_id=_identifier(f"{path}.lease_id", message.lease_id),
        job_id=_identifier(f"{path}.job_id", message.job_id),
        partition_index=message.partition_index,
        attempt=message.attempt,
        phase=member(Phase, message.phase, Phase.UNSPECIFIED),
        held=_bytes(f"{path}.held", message.held),
        permille=min(message.permille, 1000),
        outcome=outcome,
    )


def _proved(path: str, message: dispatch_pb2.Proved) -> Proved:
    if len(message.proof) > MAX_PROOF_BYTES:
        raise bad(f"{path}.proof", f"{len(message.proof)} bytes: no proof is that long")
    if len(message.statement) > MAX_STATEMENT_BYTES:
        raise bad(f"{path}.statement", f"{len(message.statement)} bytes are too many")
    return Proved(
        proof=message.proof,
        statement=message.statement,
        timings=(
            _timings(f"{path}.timings", message.timings)
            if message.HasField("timings")
            else Timings()
        ),
        peak=_bytes(f"{path}.peak", message.peak),
    )


def _failure(path: str, message: types_pb2.Failure) -> Failure:
    return Failure(
        kind=member(FailureKind, message.kind, FailureKind.INTERNAL),
        reason=_name(f"{path}.reason", message.reason),
        detail=_text(f"{path}.detail", message.detail),
        prover_id=_name(f"{path}.prover_id", message.prover_id, MAX_ID_CHARS),
        attempt=message.attempt,
    )


def _held_key(path: str, message: dispatch_pb2.HeldKey) -> HeldKey:
    return HeldKey(
        manifest_sha256=_digest(f"{path}.manifest_sha256", message.manifest_sha256),
        state=member(KeyShown, message.state, KeyShown.UNSPECIFIED),
        held=_bytes(f"{path}.held", message.held),
        references=message.references,
        reason=_text(f"{path}.reason", message.reason),
    )


def _offer(path: str, message: dispatch_pb2.CircuitOffer) -> CircuitOffer:
    _count(f"{path}.input_formats", len(message.input_formats), MAX_FEATURES)
    return CircuitOffer(
        circuit_id=_identifier(f"{path}.circuit_id", message.circuit_id, MAX_NAME_CHARS),
        manifest_sha256=_digest(f"{path}.manifest_sha256", message.manifest_sha256),
        key=_bytes(f"{path}.key", message.key),
        peak=_bytes(f"{path}.peak", message.peak),
        after_release=_bytes(f"{path}.after_release", message.after_release),
        input_formats=tuple(_name(f"{path}.input_formats", name) for name in message.input_formats),
        unusable_reason=_text(f"{path}.unusable_reason", message.unusable_reason),
        load_time_ns=_duration(f"{path}.load_time", message, "load_time"),
        expected_ns=_duration(f"{path}.expected", message, "expected"),
    )


def _fingerprint(message: types_pb2.Fingerprint) -> Fingerprint:
    digests = {
        name: _digest(f"hello.fingerprint.{name}", getattr(message, name), empty=True)
        for name in ("code_sha256", "kernels_sha256", "native_sha256")
    }
    texts = {
        name: _name(f"hello.fingerprint.{name}", getattr(message, name), 256)
        for name in ("version", "commit", "backend", "device", "driver", "runtime")
    }
    return Fingerprint(
        version=texts["version"],
        commit=texts["commit"],
        backend=texts["backend"],
        device=texts["device"],
        driver=texts["driver"],
        runtime=texts["runtime"],
        code_sha256=digests["code_sha256"],
        kernels_sha256=digests["kernels_sha256"],
        native_sha256=digests["native_sha256"],
    )


def _timings(path: str, message: types_pb2.Timings) -> Timings:
    values = {
        name: _duration(f"{path}.{name}", message, name)
        for name in ("queue", "fetch", "key_load", "synthesis", "device", "verify", "total")
    }
    return Timings(**{f"{name}_ns": value for name, value in values.items()})


def _duration(path: str, message: types_pb2.Timings | dispatch_pb2.CircuitOffer, name: str) -> int:
    value_ns = ns_of(getattr(message, name))
    if not 0 <= value_ns < MAX_DURATION_NS:
        raise bad(path, f"{value_ns / 1e9} s: must not be negative or beyond a century")
    return value_ns


def _bytes(path: str, message: types_pb2.Bytes) -> Bytes:
    for name, amount in (("host", message.host), ("device", message.device)):
        if amount >= MAX_AMOUNT:
            raise bad(f"{path}.{name}", f"{amount} bytes: at most {MAX_AMOUNT - 1}")
    return Bytes(message.host, message.device)


def _digest(path: str, value: bytes, *, empty: bool = False) -> bytes:
    if len(value) != DIGEST_BYTES and not (empty and not value):
        raise bad(path, f"{len(value)} bytes: a digest has {DIGEST_BYTES}")
    return value


def _identifier(path: str, value: str, limit: int = MAX_ID_CHARS) -> str:
    if not value:
        raise bad(path, "is empty")
    return _name(path, value, limit)


def _name(path: str, value: str, limit: int = MAX_NAME_CHARS) -> str:
    if len(value) > limit or not value.isprintable():
        raise bad(path, f"must be at most {limit} printable characters")
    return value


def _text(path: str, value: str) -> str:
    if len(value) > MAX_TEXT_CHARS:
        raise bad(path, f"{len(value)} characters: at most {MAX_TEXT_CHARS}")
    return value


def _count(path: str, found: int, most: int) -> None:
    if found > most:
        raise bad(path, f"{found} entries: at most {most}")
