import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from partita.v1 import dispatch_pb2 as _dispatch_pb2
from partita.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_ACTIVE: _ClassVar[Mode]
    MODE_CORDONED: _ClassVar[Mode]
    MODE_DRAINED: _ClassVar[Mode]

class Trust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRUST_UNSPECIFIED: _ClassVar[Trust]
    TRUST_TRUSTED: _ClassVar[Trust]
    TRUST_QUARANTINED: _ClassVar[Trust]
    TRUST_PROBATION: _ClassVar[Trust]

class Residency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESIDENCY_UNSPECIFIED: _ClassVar[Residency]
    RESIDENCY_AUTO: _ClassVar[Residency]
    RESIDENCY_PINNED: _ClassVar[Residency]
    RESIDENCY_EVICTED: _ClassVar[Residency]

class KeyFamily(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_FAMILY_UNSPECIFIED: _ClassVar[KeyFamily]
    KEY_FAMILY_SNARKJS: _ClassVar[KeyFamily]
    KEY_FAMILY_BELLPERSON: _ClassVar[KeyFamily]
MODE_UNSPECIFIED: Mode
MODE_ACTIVE: Mode
MODE_CORDONED: Mode
MODE_DRAINED: Mode
TRUST_UNSPECIFIED: Trust
TRUST_TRUSTED: Trust
TRUST_QUARANTINED: Trust
TRUST_PROBATION: Trust
RESIDENCY_UNSPECIFIED: Residency
RESIDENCY_AUTO: Residency
RESIDENCY_PINNED: Residency
RESIDENCY_EVICTED: Residency
KEY_FAMILY_UNSPECIFIED: KeyFamily
KEY_FAMILY_SNARKJS: KeyFamily
KEY_FAMILY_BELLPERSON: KeyFamily

class Circuit(_message.Message):
    __slots__ = ("circuit_id", "manifest_sha256", "curve", "family", "n_public", "n_wires", "domain", "vk", "files", "input_formats", "residency", "manifest_json", "insecure")
    class File(_message.Message):
        __slots__ = ("role", "blob", "local")
        ROLE_FIELD_NUMBER: _ClassVar[int]
        BLOB_FIELD_NUMBER: _ClassVar[int]
        LOCAL_FIELD_NUMBER: _ClassVar[int]
        role: str
        blob: _types_pb2.BlobRef
        local: bool
        def __init__(self, role: _Optional[str] = ..., blob: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., local: _Optional[bool] = ...) -> None: ...
    class InputFormat(_message.Message):
        __slots__ = ("name", "max_input_bytes")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MAX_INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
        name: str
        max_input_bytes: int
        def __init__(self, name: _Optional[str] = ..., max_input_bytes: _Optional[int] = ...) -> None: ...
    class KeyResidency(_message.Message):
        __slots__ = ("prover_id", "state", "held")
        PROVER_ID_FIELD_NUMBER: _ClassVar[int]
        STATE_FIELD_NUMBER: _ClassVar[int]
        HELD_FIELD_NUMBER: _ClassVar[int]
        prover_id: str
        state: _dispatch_pb2.HeldKey.State
        held: _types_pb2.Bytes
        def __init__(self, prover_id: _Optional[str] = ..., state: _Optional[_Union[_dispatch_pb2.HeldKey.State, str]] = ..., held: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ...) -> None: ...
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    CURVE_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    N_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    N_WIRES_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    VK_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    INPUT_FORMATS_FIELD_NUMBER: _ClassVar[int]
    RESIDENCY_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_JSON_FIELD_NUMBER: _ClassVar[int]
    INSECURE_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    manifest_sha256: bytes
    curve: str
    family: KeyFamily
    n_public: int
    n_wires: int
    domain: int
    vk: _types_pb2.BlobRef
    files: _containers.RepeatedCompositeFieldContainer[Circuit.File]
    input_formats: _containers.RepeatedCompositeFieldContainer[Circuit.InputFormat]
    residency: _containers.RepeatedCompositeFieldContainer[Circuit.KeyResidency]
    manifest_json: str
    insecure: bool
    def __init__(self, circuit_id: _Optional[str] = ..., manifest_sha256: _Optional[bytes] = ..., curve: _Optional[str] = ..., family: _Optional[_Union[KeyFamily, str]] = ..., n_public: _Optional[int] = ..., n_wires: _Optional[int] = ..., domain: _Optional[int] = ..., vk: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., files: _Optional[_Iterable[_Union[Circuit.File, _Mapping]]] = ..., input_formats: _Optional[_Iterable[_Union[Circuit.InputFormat, _Mapping]]] = ..., residency: _Optional[_Iterable[_Union[Circuit.KeyResidency, _Mapping]]] = ..., manifest_json: _Optional[str] = ..., insecure: _Optional[bool] = ...) -> None: ...

class ProverView(_message.Message):
    __slots__ = ("hello", "actual", "desired", "mode", "trust", "reason", "charged", "proved", "failed", "last_seen", "connected", "debits")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_FIELD_NUMBER: _ClassVar[int]
    DESIRED_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    PROVED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    DEBITS_FIELD_NUMBER: _ClassVar[int]
    hello: _dispatch_pb2.Hello
    actual: _dispatch_pb2.Actual
    desired: _dispatch_pb2.Desired
    mode: Mode
    trust: Trust
    reason: str
    charged: _types_pb2.Bytes
    proved: int
    failed: int
    last_seen: _timestamp_pb2.Timestamp
    connected: bool
    debits: int
    def __init__(self, hello: _Optional[_Union[_dispatch_pb2.Hello, _Mapping]] = ..., actual: _Optional[_Union[_dispatch_pb2.Actual, _Mapping]] = ..., desired: _Optional[_Union[_dispatch_pb2.Desired, _Mapping]] = ..., mode: _Optional[_Union[Mode, str]] = ..., trust: _Optional[_Union[Trust, str]] = ..., reason: _Optional[str] = ..., charged: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ..., proved: _Optional[int] = ..., failed: _Optional[int] = ..., last_seen: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., connected: _Optional[bool] = ..., debits: _Optional[int] = ...) -> None: ...

class LaneView(_message.Message):
    __slots__ = ("circuit_id", "waiting", "head_job_id", "head_index", "waiting_for")
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    HEAD_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    HEAD_INDEX_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    waiting: int
    head_job_id: str
    head_index: int
    waiting_for: str
    def __init__(self, circuit_id: _Optional[str] = ..., waiting: _Optional[int] = ..., head_job_id: _Optional[str] = ..., head_index: _Optional[int] = ..., waiting_for: _Optional[str] = ...) -> None: ...

class CircuitLoad(_message.Message):
    __slots__ = ("circuit_id", "jobs_open", "partitions_waiting", "partitions_leased")
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    JOBS_OPEN_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_WAITING_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_LEASED_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    jobs_open: int
    partitions_waiting: int
    partitions_leased: int
    def __init__(self, circuit_id: _Optional[str] = ..., jobs_open: _Optional[int] = ..., partitions_waiting: _Optional[int] = ..., partitions_leased: _Optional[int] = ...) -> None: ...

class FleetSnapshot(_message.Message):
    __slots__ = ("epoch", "provers", "lanes", "jobs_open", "circuits")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PROVERS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    JOBS_OPEN_FIELD_NUMBER: _ClassVar[int]
    CIRCUITS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    provers: _containers.RepeatedCompositeFieldContainer[ProverView]
    lanes: _containers.RepeatedCompositeFieldContainer[LaneView]
    jobs_open: int
    circuits: _containers.RepeatedCompositeFieldContainer[CircuitLoad]
    def __init__(self, epoch: _Optional[int] = ..., provers: _Optional[_Iterable[_Union[ProverView, _Mapping]]] = ..., lanes: _Optional[_Iterable[_Union[LaneView, _Mapping]]] = ..., jobs_open: _Optional[int] = ..., circuits: _Optional[_Iterable[_Union[CircuitLoad, _Mapping]]] = ...) -> None: ...

class ListProversRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListProversResponse(_message.Message):
    __slots__ = ("provers",)
    PROVERS_FIELD_NUMBER: _ClassVar[int]
    provers: _containers.RepeatedCompositeFieldContainer[ProverView]
    def __init__(self, provers: _Optional[_Iterable[_Union[ProverView, _Mapping]]] = ...) -> None: ...

class WatchFleetRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchFleetResponse(_message.Message):
    __slots__ = ("fleet",)
    FLEET_FIELD_NUMBER: _ClassVar[int]
    fleet: FleetSnapshot
    def __init__(self, fleet: _Optional[_Union[FleetSnapshot, _Mapping]] = ...) -> None: ...

class SetProverModeRequest(_message.Message):
    __slots__ = ("prover_id", "mode", "trust", "reason")
    PROVER_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    prover_id: str
    mode: Mode
    trust: Trust
    reason: str
    def __init__(self, prover_id: _Optional[str] = ..., mode: _Optional[_Union[Mode, str]] = ..., trust: _Optional[_Union[Trust, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class SetProverModeResponse(_message.Message):
    __slots__ = ("prover",)
    PROVER_FIELD_NUMBER: _ClassVar[int]
    prover: ProverView
    def __init__(self, prover: _Optional[_Union[ProverView, _Mapping]] = ...) -> None: ...

class ListCircuitsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListCircuitsResponse(_message.Message):
    __slots__ = ("circuits", "catalogue_revision")
    CIRCUITS_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_REVISION_FIELD_NUMBER: _ClassVar[int]
    circuits: _containers.RepeatedCompositeFieldContainer[Circuit]
    catalogue_revision: bytes
    def __init__(self, circuits: _Optional[_Iterable[_Union[Circuit, _Mapping]]] = ..., catalogue_revision: _Optional[bytes] = ...) -> None: ...

class AddCircuitRequest(_message.Message):
    __slots__ = ("circuit_id", "manifest_json")
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_JSON_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    manifest_json: str
    def __init__(self, circuit_id: _Optional[str] = ..., manifest_json: _Optional[str] = ...) -> None: ...

class AddCircuitResponse(_message.Message):
    __slots__ = ("circuit",)
    CIRCUIT_FIELD_NUMBER: _ClassVar[int]
    circuit: Circuit
    def __init__(self, circuit: _Optional[_Union[Circuit, _Mapping]] = ...) -> None: ...

class RemoveCircuitRequest(_message.Message):
    __slots__ = ("circuit_id",)
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    def __init__(self, circuit_id: _Optional[str] = ...) -> None: ...

class RemoveCircuitResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetResidencyRequest(_message.Message):
    __slots__ = ("circuit_id", "prover_id", "residency")
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    PROVER_ID_FIELD_NUMBER: _ClassVar[int]
    RESIDENCY_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    prover_id: str
    residency: Residency
    def __init__(self, circuit_id: _Optional[str] = ..., prover_id: _Optional[str] = ..., residency: _Optional[_Union[Residency, str]] = ...) -> None: ...

class SetResidencyResponse(_message.Message):
    __slots__ = ("changed",)
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    changed: _types_pb2.Bytes
    def __init__(self, changed: _Optional[_Union[_types_pb2.Bytes, _Mapping]] = ...) -> None: ...
