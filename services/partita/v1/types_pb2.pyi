import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
    PRIORITY_CRITICAL: _ClassVar[Priority]

class FailureKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_KIND_UNSPECIFIED: _ClassVar[FailureKind]
    FAILURE_KIND_INVALID_INPUT: _ClassVar[FailureKind]
    FAILURE_KIND_RESOURCE: _ClassVar[FailureKind]
    FAILURE_KIND_COMPUTE: _ClassVar[FailureKind]
    FAILURE_KIND_UNVERIFIED: _ClassVar[FailureKind]
    FAILURE_KIND_HANDED_BACK: _ClassVar[FailureKind]
    FAILURE_KIND_LOST: _ClassVar[FailureKind]
    FAILURE_KIND_TIMED_OUT: _ClassVar[FailureKind]
    FAILURE_KIND_INPUT_LOST: _ClassVar[FailureKind]
    FAILURE_KIND_INTERNAL: _ClassVar[FailureKind]

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    PHASE_FETCHING: _ClassVar[Phase]
    PHASE_SYNTHESIZING: _ClassVar[Phase]
    PHASE_WAITING_FOR_DEVICE: _ClassVar[Phase]
    PHASE_PROVING: _ClassVar[Phase]
    PHASE_FINISHING: _ClassVar[Phase]
    PHASE_CHECKING: _ClassVar[Phase]
    PHASE_WAITING_FOR_SYNTHESIS: _ClassVar[Phase]
    PHASE_FINISHED: _ClassVar[Phase]
    PHASE_STOPPING: _ClassVar[Phase]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_LOW: Priority
PRIORITY_NORMAL: Priority
PRIORITY_HIGH: Priority
PRIORITY_CRITICAL: Priority
FAILURE_KIND_UNSPECIFIED: FailureKind
FAILURE_KIND_INVALID_INPUT: FailureKind
FAILURE_KIND_RESOURCE: FailureKind
FAILURE_KIND_COMPUTE: FailureKind
FAILURE_KIND_UNVERIFIED: FailureKind
FAILURE_KIND_HANDED_BACK: FailureKind
FAILURE_KIND_LOST: FailureKind
FAILURE_KIND_TIMED_OUT: FailureKind
FAILURE_KIND_INPUT_LOST: FailureKind
FAILURE_KIND_INTERNAL: FailureKind
PHASE_UNSPECIFIED: Phase
PHASE_FETCHING: Phase
PHASE_SYNTHESIZING: Phase
PHASE_WAITING_FOR_DEVICE: Phase
PHASE_PROVING: Phase
PHASE_FINISHING: Phase
PHASE_CHECKING: Phase
PHASE_WAITING_FOR_SYNTHESIS: Phase
PHASE_FINISHED: Phase
PHASE_STOPPING: Phase

class BlobRef(_message.Message):
    __slots__ = ("sha256", "size_bytes")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    size_bytes: int
    def __init__(self, sha256: _Optional[bytes] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class Bytes(_message.Message):
    __slots__ = ("host", "device")
    HOST_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    host: int
    device: int
    def __init__(self, host: _Optional[int] = ..., device: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("kind", "reason", "detail", "prover_id", "attempt", "time")
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    PROVER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    kind: FailureKind
    reason: str
    detail: str
    prover_id: str
    attempt: int
    time: _timestamp_pb2.Timestamp
    def __init__(self, kind: _Optional[_Union[FailureKind, str]] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., prover_id: _Optional[str] = ..., attempt: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Timings(_message.Message):
    __slots__ = ("queue", "fetch", "key_load", "synthesis", "device", "verify", "total")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    KEY_LOAD_FIELD_NUMBER: _ClassVar[int]
    SYNTHESIS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    queue: _duration_pb2.Duration
    fetch: _duration_pb2.Duration
    key_load: _duration_pb2.Duration
    synthesis: _duration_pb2.Duration
    device: _duration_pb2.Duration
    verify: _duration_pb2.Duration
    total: _duration_pb2.Duration
    def __init__(self, queue: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., fetch: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., key_load: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., synthesis: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., device: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., verify: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., total: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Fingerprint(_message.Message):
    __slots__ = ("version", "commit", "code_sha256", "kernels_sha256", "native_sha256", "backend", "device", "driver", "runtime")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    CODE_SHA256_FIELD_NUMBER: _ClassVar[int]
    KERNELS_SHA256_FIELD_NUMBER: _ClassVar[int]
    NATIVE_SHA256_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    version: str
    commit: str
    code_sha256: bytes
    kernels_sha256: bytes
    native_sha256: bytes
    backend: str
    device: str
    driver: str
    runtime: str
    def __init__(self, version: _Optional[str] = ..., commit: _Optional[str] = ..., code_sha256: _Optional[bytes] = ..., kernels_sha256: _Optional[bytes] = ..., native_sha256: _Optional[bytes] = ..., backend: _Optional[str] = ..., device: _Optional[str] = ..., driver: _Optional[str] = ..., runtime: _Optional[str] = ...) -> None: ...
