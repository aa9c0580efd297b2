import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from partita.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_QUEUED: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_COMPLETED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]

class PartitionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTITION_STATE_UNSPECIFIED: _ClassVar[PartitionState]
    PARTITION_STATE_WAITING: _ClassVar[PartitionState]
    PARTITION_STATE_LEASED: _ClassVar[PartitionState]
    PARTITION_STATE_PROVED: _ClassVar[PartitionState]
    PARTITION_STATE_DROPPED: _ClassVar[PartitionState]

class StatementSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATEMENT_SOURCE_UNSPECIFIED: _ClassVar[StatementSource]
    STATEMENT_SOURCE_SUBMITTED: _ClassVar[StatementSource]
    STATEMENT_SOURCE_INPUT: _ClassVar[StatementSource]
    STATEMENT_SOURCE_PROVER: _ClassVar[StatementSource]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_QUEUED: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_COMPLETED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState
PARTITION_STATE_UNSPECIFIED: PartitionState
PARTITION_STATE_WAITING: PartitionState
PARTITION_STATE_LEASED: PartitionState
PARTITION_STATE_PROVED: PartitionState
PARTITION_STATE_DROPPED: PartitionState
STATEMENT_SOURCE_UNSPECIFIED: StatementSource
STATEMENT_SOURCE_SUBMITTED: StatementSource
STATEMENT_SOURCE_INPUT: StatementSource
STATEMENT_SOURCE_PROVER: StatementSource

class PartitionInput(_message.Message):
    __slots__ = ("blob", "inline", "statement")
    BLOB_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    blob: _types_pb2.BlobRef
    inline: bytes
    statement: bytes
    def __init__(self, blob: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., inline: _Optional[bytes] = ..., statement: _Optional[bytes] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("index", "state", "phase", "prover_id", "attempt", "waiting_for", "proof", "statement", "statement_source", "failures", "statement_sha256", "timings")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PROVER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_SOURCE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    index: int
    state: PartitionState
    phase: _types_pb2.Phase
    prover_id: str
    attempt: int
    waiting_for: str
    proof: bytes
    statement: bytes
    statement_source: StatementSource
    failures: _containers.RepeatedCompositeFieldContainer[_types_pb2.Failure]
    statement_sha256: bytes
    timings: _types_pb2.Timings
    def __init__(self, index: _Optional[int] = ..., state: _Optional[_Union[PartitionState, str]] = ..., phase: _Optional[_Union[_types_pb2.Phase, str]] = ..., prover_id: _Optional[str] = ..., attempt: _Optional[int] = ..., waiting_for: _Optional[str] = ..., proof: _Optional[bytes] = ..., statement: _Optional[bytes] = ..., statement_source: _Optional[_Union[StatementSource, str]] = ..., failures: _Optional[_Iterable[_Union[_types_pb2.Failure, _Mapping]]] = ..., statement_sha256: _Optional[bytes] = ..., timings: _Optional[_Union[_types_pb2.Timings, _Mapping]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("job_id", "request_id", "circuit_id", "state", "priority", "partitions", "failure", "partitions_done", "partitions_ahead", "created", "started", "ended", "timings", "expected_end", "partitions_total", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_DONE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_END_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    request_id: str
    circuit_id: str
    state: JobState
    priority: _types_pb2.Priority
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    failure: _types_pb2.Failure
    partitions_done: int
    partitions_ahead: int
    created: _timestamp_pb2.Timestamp
    started: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    timings: _types_pb2.Timings
    expected_end: _timestamp_pb2.Timestamp
    partitions_total: int
    labels: _containers.ScalarMap[str, str]
    def __init__(self, job_id: _Optional[str] = ..., request_id: _Optional[str] = ..., circuit_id: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., priority: _Optional[_Union[_types_pb2.Priority, str]] = ..., partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ..., failure: _Optional[_Union[_types_pb2.Failure, _Mapping]] = ..., partitions_done: _Optional[int] = ..., partitions_ahead: _Optional[int] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., timings: _Optional[_Union[_types_pb2.Timings, _Mapping]] = ..., expected_end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., partitions_total: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("fingerprint", "epoch", "features", "max_blob_bytes", "chunk_bytes", "max_partitions", "max_request_bytes")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    MAX_BLOB_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    fingerprint: _types_pb2.Fingerprint
    epoch: int
    features: _containers.RepeatedScalarFieldContainer[str]
    max_blob_bytes: int
    chunk_bytes: int
    max_partitions: int
    max_request_bytes: int
    def __init__(self, fingerprint: _Optional[_Union[_types_pb2.Fingerprint, _Mapping]] = ..., epoch: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., max_blob_bytes: _Optional[int] = ..., chunk_bytes: _Optional[int] = ..., max_partitions: _Optional[int] = ..., max_request_bytes: _Optional[int] = ...) -> None: ...

class SubmitJobRequest(_message.Message):
    __slots__ = ("request_id", "circuit_id", "input_format", "partitions", "priority", "deadline", "retain", "abandon_after", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FIELD_NUMBER: _ClassVar[int]
    ABANDON_AFTER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    circuit_id: str
    input_format: str
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionInput]
    priority: _types_pb2.Priority
    deadline: _timestamp_pb2.Timestamp
    retain: _duration_pb2.Duration
    abandon_after: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    def __init__(self, request_id: _Optional[str] = ..., circuit_id: _Optional[str] = ..., input_format: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[PartitionInput, _Mapping]]] = ..., priority: _Optional[_Union[_types_pb2.Priority, str]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retain: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., abandon_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SubmitJobResponse(_message.Message):
    __slots__ = ("job", "attached")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    job: Job
    attached: bool
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., attached: _Optional[bool] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id", "wait")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    wait: _duration_pb2.Duration
    def __init__(self, job_id: _Optional[str] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "circuit_id", "request_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[JobState]
    circuit_id: str
    request_id: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[JobState, str]]] = ..., circuit_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListPartitionsRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPartitionsResponse(_message.Message):
    __slots__ = ("partitions", "next_page_token")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    next_page_token: str
    def __init__(self, partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    reason: str
    def __init__(self, job_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class RetryJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class RetryJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...
