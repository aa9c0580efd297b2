"""A SubmitJob request, checked: every bound and every statement rule, without I/O.

The shape is checked first (`checked`), against the circuit of the catalogue. What needs the blobs
is done by the caller: which of them are there, and what a .wtns states itself (`with_stated`).
Every error names the field by its path and says what would be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.errors import Groth16Error
from partita.groth16.statement import decode_statement
from partita.scheduler.api.status import bad, unknown_circuit
from partita.scheduler.api.translate import member, ns_of
from partita.scheduler.catalogue import Known, KnownCircuit
from partita.scheduler.config import MAX_INLINE_BYTES
from partita.scheduler.core.model import BlobRef, PartitionSpec, Priority, StatementSource
from partita.scheduler.identity import job_digest
from partita.v1 import proving_pb2, types_pb2

DIGEST_BYTES = 32
MAX_PARTITIONS = 1024
MAX_REQUEST_ID_BYTES = 256
MAX_LABELS = 16
MAX_LABEL_KEY_BYTES = 64
MAX_LABEL_VALUE_BYTES = 256
MAX_RETAIN_NS = 366 * 86_400 * 10**9
WTNS = "wtns"


@dataclass(frozen=True, slots=True)
class Submission:
    """A request whose shape is right."""

    request_id: str
    circuit: KnownCircuit
    input_format: str
    digest: bytes
    partitions: tuple[PartitionSpec, ...]
    priority: Priority
    deadline_ns: int | None
    retain_ns: int | None
    abandon_after_ns: int | None
    labels: tuple[tuple[str, str], ...]

    @property
    def states_itself(self) -> bool:
        """Whether the inputs begin with their statements."""
        return self.input_format == WTNS


def checked(
    request: proving_pb2.SubmitJobRequest,
    known: Known,
    *,
    allow_prover_statements: bool,
) -> Submission:
    """Check everything that needs no blob.

    Raises:
        RpcError: with the reason and the field.
    """
    size = len(request.request_id.encode())
    if size > MAX_REQUEST_ID_BYTES:
        raise bad("request_id", f"{size} bytes: at most {MAX_REQUEST_ID_BYTES}")
    labels = _labels(request)
    if not 1 <= len(request.partitions) <= MAX_PARTITIONS:
        reason = "TOO_MANY_PARTITIONS" if request.partitions else "BAD_INPUT"
        raise bad(
            "partitions",
            f"{len(request.partitions)} partitions: a job has 1 to {MAX_PARTITIONS}; split it",
            reason,
        )
    circuit = known.circuits.get(request.circuit_id)
    if circuit is None:
        raise unknown_circuit(request.circuit_id, known.broken.get(request.circuit_id))
    manifest = circuit.entry.manifest
    limit = manifest.input_formats.get(request.input_format)
    if limit is None:
        raise bad(
            "input_format",
            f"{request.input_format[:64]!r}: {request.circuit_id} takes "
            + ", ".join(sorted(manifest.input_formats)),
            "UNKNOWN_FORMAT",
        )
    partitions = tuple(
        _partition(
            f"partitions[{index}]",
            part,
            circuit,
            limit,
            request.input_format,
            prover_may_state=allow_prover_statements,
        )
        for index, part in enumerate(request.partitions)
    )
    return Submission(
        request_id=request.request_id,
        circuit=circuit,
        input_format=request.input_format,
        digest=job_digest(
            circuit.entry.manifest_sha256,
            request.input_format,
            ((part.input.sha256, part.statement) for part in partitions),
        ),
        partitions=partitions,
        priority=member(Priority, request.priority, Priority.NORMAL),
        deadline_ns=_moment(request),
        retain_ns=_length(request, "retain", MAX_RETAIN_NS),
        abandon_after_ns=_length(request, "abandon_after", MAX_RETAIN_NS),
        labels=labels,
    )


def with_stated(submission: Submission, stated: Sequence[bytes]) -> Submission:
    """Return the submission with what each input states of itself.

    Raises:
        RpcError: BAD_INPUT where a submitted statement is another one.
    """
    partitions = []
    for index, (spec, own) in enumerate(zip(submission.partitions, stated, strict=True)):
        if spec.statement is not None and spec.statement != own:
            raise bad(
                f"partitions[{index}].statement",
                f"SHA-256 {hashlib.sha256(spec.statement).hexdigest()}, but the witness states "
                f"{hashlib.sha256(own).hexdigest()}: leave it out, or send the right witness",
            )
        partitions.append(
            spec
            if spec.statement is not None
            else replace(spec, statement=own, statement_source=StatementSource.INPUT)
        )
    return replace(submission, partitions=tuple(partitions))


def with_inline(submission: Submission, found: dict[bytes, bytes]) -> Submission:
    """Return the submission with inputs that live in other jobs' rows copied into its own."""
    return replace(
        submission,
        partitions=tuple(
            replace(spec, inline=found[spec.input.sha256])
            if spec.inline is None and spec.input.sha256 in found
            else spec
            for spec in submission.partitions
        ),
    )


def blob_ref(path: str, message: types_pb2.BlobRef) -> BlobRef:
    """Return a reference to a blob.

    Raises:
        RpcError: BAD_INPUT, the digest has another length.
    """
    if len(message.sha256) != DIGEST_BYTES:
        raise bad(f"{path}.sha256", f"{len(message.sha256)} bytes: SHA-256 has {DIGEST_BYTES}")
    return BlobRef(message.sha256, message.size_bytes)


def _partition(
    path: str,
    part: proving_pb2.PartitionInput,
    circuit: KnownCircuit,
    limit: int,
    input_format: str,
    *,
    prover_may_state: bool,
) -> PartitionSpec:
    inline: bytes | None = None
    match part.WhichOneof("content"):
        case "blob":
            ref = blob_ref(f"{path}.blob", part.blob)
        case "inline":
            inline = part.inline
            if len(inline) > MAX_INLINE_BYTES:
                raise bad(
                    f"{path}.inline",
                    f"{len(inline)} bytes: at most {MAX_INLINE_BYTES}; upload it as a blob",
                )
            ref = BlobRef(hashlib.sha256(inline).digest(), len(inline))
        case _:
            raise bad(path, "has no input: set blob or inline")
    if ref.size_bytes > limit:
        raise bad(
            path,
            f"the input has {ref.size_bytes} bytes: {circuit.entry.circuit_id} takes at most "
            f"{limit} as {input_format}",
        )
    if not part.HasField("statement"):
        if input_format != WTNS and not prover_may_state:
            raise bad(
                f"{path}.statement",
                "is absent: this scheduler does not let the prover state it "
                "(allow_prover_statements); send the public inputs",
            )
        return PartitionSpec(ref, inline)
    _check_statement(f"{path}.statement", part.statement, circuit)
    return PartitionSpec(ref, inline, part.statement, StatementSource.SUBMITTED)


def _check_statement(path: str, statement: bytes, circuit: KnownCircuit) -> None:
    manifest = circuit.entry.manifest
    expected = manifest.n_public * SCALAR_SIZE_BYTES
    if len(statement) != expected:
        raise bad(
            path,
            f"{len(statement)} bytes: {circuit.entry.circuit_id} has {manifest.n_public} public "
            f"inputs of {SCALAR_SIZE_BYTES} bytes, {expected} in all",
            "STATEMENT_LENGTH",
        )
    try:
        decode_statement(curve_named(manifest.curve), statement, manifest.n_public)
    except Groth16Error as error:
        raise bad(path, str(error)) from error


def _labels(request: proving_pb2.SubmitJobRequest) -> tuple[tuple[str, str], ...]:
    if len(request.labels) > MAX_LABELS:
        raise bad("labels", f"{len(request.labels)} labels: at most {MAX_LABELS}")
    for key, value in request.labels.items():
        if not 1 <= len(key.encode()) <= MAX_LABEL_KEY_BYTES:
            raise bad("labels", f"key {key[:64]!r}: 1 to {MAX_LABEL_KEY_BYTES} bytes")
        if len(value.encode()) > MAX_LABEL_VALUE_BYTES:
            raise bad(f"labels[{key}]", f"at most {MAX_LABEL_VALUE_BYTES} bytes")
    return tuple(sorted(request.labels.items()))


def _moment(request: proving_pb2.SubmitJobRequest) -> int | None:
    if not request.HasField("deadline"):
        return None
    value_ns = ns_of(request.deadline)
    if not 0 < value_ns < 1 << 62:
        raise bad("deadline", "must lie between 1970 and 2116")
    return value_ns


def _length(request: proving_pb2.SubmitJobRequest, name: str, most_ns: int) -> int | None:
    if not request.HasField(name):
        return None
    value_ns = ns_of(getattr(request, name))
    if not 0 <= value_ns <= most_ns:
        raise bad(name, f"{value_ns / 1e9} s: must be 0 to {most_ns // 10**9} s")
    return value_ns
