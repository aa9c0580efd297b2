import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from partita.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Condition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONDITION_UNSPECIFIED: _ClassVar[Condition]
    CONDITION_READY: _ClassVar[Condition]
    CONDITION_DRAINING: _ClassVar[Condition]
    CONDITION_FAULTED: _ClassVar[Condition]
CONDITION_UNSPECIFIED: Condition
CONDITION_READY: Condition
CONDITION_DRAINING: Condition
CONDITION_FAULTED: Condition

class WorkRequest(_message.Message):
    __slots__ = ("hello", "actual")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    actual: Actual
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., actual: _Optional[_Union[Actual, _Mapping]] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("welcome", "desired")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    DESIRED_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    desired: Desired
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., desired: _Optional[_Union[Desired, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("prover_id", "instance_id", "contract_min", "contract_max", "features", "fingerprint", "total", "max_leases", "express_leases", "highest_epoch", "offers", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROVER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_MIN_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_MAX_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASES_FIELD_NUMBER: _ClassVar[int]
    EXPRESS_LEASES_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    prover_id: str
    instance_id: str
    contract_min: int
    contract_max: int
    features: _containers.RepeatedScalarFieldContainer[str]
    fingerprint: _types_pb2.Fingerprint
    total: _types_pb2.Bytes
    max_leases: int
    express_leases: int
    highest_epoch: int
    offers: _containers.RepeatedCompositeFieldContainer[CircuitOffer]
    labels: _containers.ScalarMap[str, str]
    def __init__(self, prover_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., contract_min: _Optional[int] = ..., contract_max: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., fingerprint: _Optional[_Union[_types_pb2.Fingerprint, _Mapping]] = ..., total: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., max_leases: _Optional[int] = ..., express_leases: _Optional[int] = ..., highest_epoch: _Optional[int] = ..., offers: _Optional[_Iterable[_Union[CircuitOffer, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CircuitOffer(_message.Message):
    __slots__ = ("circuit_id", "manifest_sha256", "key", "peak", "after_release", "input_formats", "unusable_reason", "load_time", "expected")
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PEAK_FIELD_NUMBER: _ClassVar[int]
    AFTER_RELEASE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FORMATS_FIELD_NUMBER: _ClassVar[int]
    UNUSABLE_REASON_FIELD_NUMBER: _ClassVar[int]
    LOAD_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    manifest_sha256: bytes
    key: _types_pb2.Bytes
    peak: _types_pb2.Bytes
    after_release: _types_pb2.Bytes
    input_formats: _containers.RepeatedScalarFieldContainer[str]
    unusable_reason: str
    load_time: _duration_pb2.Duration
    expected: _duration_pb2.Duration
    def __init__(self, circuit_id: _Optional[str] = ..., manifest_sha256: _Optional[bytes] = ..., key: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., peak: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., after_release: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., input_formats: _Optional[_Iterable[str]] = ..., unusable_reason: _Optional[str] = ..., load_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expected: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("epoch", "contract", "features", "catalogue_revision", "beat")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_REVISION_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    contract: int
    features: _containers.RepeatedScalarFieldContainer[str]
    catalogue_revision: bytes
    beat: _duration_pb2.Duration
    def __init__(self, epoch: _Optional[int] = ..., contract: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., catalogue_revision: _Optional[bytes] = ..., beat: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Actual(_message.Message):
    __slots__ = ("applied", "condition", "reason", "leases", "keys", "measured")
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    applied: int
    condition: Condition
    reason: str
    leases: _containers.RepeatedCompositeFieldContainer[HeldLease]
    keys: _containers.RepeatedCompositeFieldContainer[HeldKey]
    measured: _types_pb2.Bytes
    def __init__(self, applied: _Optional[int] = ..., condition: _Optional[_Union[Condition, str]] = ..., reason: _Optional[str] = ..., leases: _Optional[_Iterable[_Union[HeldLease, _Mapping]]] = ..., keys: _Optional[_Iterable[_Union[HeldKey, _Mapping]]] = ..., measured: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ...) -> None: ...

class HeldLease(_message.Message):
    __slots__ = ("lease_id", "job_id", "partition_index", "attempt", "phase", "held", "permille", "proved", "failure")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    PERMILLE_FIELD_NUMBER: _ClassVar[int]
    PROVED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    job_id: str
    partition_index: int
    attempt: int
    phase: _types_pb2.Phase
    held: _types_pb2.Bytes
    permille: int
    proved: Proved
    failure: _types_pb2.Failure
    def __init__(self, lease_id: _Optional[str] = ..., job_id: _Optional[str] = ..., partition_index: _Optional[int] = ..., attempt: _Optional[int] = ..., phase: _Optional[_Union[_types_pb2.Phase, str]] = ..., held: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., permille: _Optional[int] = ..., proved: _Optional[_Union[Proved, _Mapping]] = ..., failure: _Optional[_Union[_types_pb2.Failure, _Mapping]] = ...) -> None: ...

class Proved(_message.Message):
    __slots__ = ("proof", "statement", "timings", "peak")
    PROOF_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    PEAK_FIELD_NUMBER: _ClassVar[int]
    proof: bytes
    statement: bytes
    timings: _types_pb2.Timings
    peak: _types_pb2.Bytes
    def __init__(self, proof: _Optional[bytes] = ..., statement: _Optional[bytes] = ..., timings: _Optional[_Union[_types_pb2.Timings, _Mapping]] = ..., peak: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ...) -> None: ...

class HeldKey(_message.Message):
    __slots__ = ("manifest_sha256", "state", "held", "references", "reason")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[HeldKey.State]
        STATE_LOADING: _ClassVar[HeldKey.State]
        STATE_READY: _ClassVar[HeldKey.State]
        STATE_LEAVING: _ClassVar[HeldKey.State]
        STATE_FAILED: _ClassVar[HeldKey.State]
    STATE_UNSPECIFIED: HeldKey.State
    STATE_LOADING: HeldKey.State
    STATE_READY: HeldKey.State
    STATE_LEAVING: HeldKey.State
    STATE_FAILED: HeldKey.State
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    manifest_sha256: bytes
    state: HeldKey.State
    held: _types_pb2.Bytes
    references: int
    reason: str
    def __init__(self, manifest_sha256: _Optional[bytes] = ..., state: _Optional[_Union[HeldKey.State, str]] = ..., held: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., references: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Desired(_message.Message):
    __slots__ = ("epoch", "revision", "leases", "keys", "drain", "catalogue_revision")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_REVISION_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    revision: int
    leases: _containers.RepeatedCompositeFieldContainer[Lease]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    drain: bool
    catalogue_revision: bytes
    def __init__(self, epoch: _Optional[int] = ..., revision: _Optional[int] = ..., leases: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ..., keys: _Optional[_Iterable[bytes]] = ..., drain: _Optional[bool] = ..., catalogue_revision: _Optional[bytes] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("lease_id", "job_id", "partition_index", "attempt", "circuit_id", "manifest_sha256", "input", "input_format", "priority", "job_seq", "reserved", "timeout", "diagnose", "statement_sha256", "inline", "traceparent")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOB_SEQ_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSE_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    job_id: str
    partition_index: int
    attempt: int
    circuit_id: str
    manifest_sha256: bytes
    input: _types_pb2.BlobRef
    input_format: str
    priority: _types_pb2.Priority
    job_seq: int
    reserved: _types_pb2.Bytes
    timeout: _duration_pb2.Duration
    diagnose: bool
    statement_sha256: bytes
    inline: bytes
    traceparent: str
    def __init__(self, lease_id: _Optional[str] = ..., job_id: _Optional[str] = ..., partition_index: _Optional[int] = ..., attempt: _Optional[int] = ..., circuit_id: _Optional[str] = ..., manifest_sha256: _Optional[bytes] = ..., input: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., input_format: _Optional[str] = ..., priority: _Optional[_Union[_types_pb2.Priority, str]] = ..., job_seq: _Optional[int] = ..., reserved: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., diagnose: _Optional[bool] = ..., statement_sha256: _Optional[bytes] = ..., inline: _Optional[bytes] = ..., traceparent: _Optional[str] = ...) -> None: ...
