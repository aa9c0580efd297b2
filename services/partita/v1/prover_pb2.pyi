from partita.v1 import dispatch_pb2 as _dispatch_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetInfoResponse(_message.Message):
    __slots__ = ("hello", "actual", "scheduler_address")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    hello: _dispatch_pb2.Hello
    actual: _dispatch_pb2.Actual
    scheduler_address: str
    def __init__(self, hello: _Optional[_Union[_dispatch_pb2.Hello, _Mapping]] = ..., actual: _Optional[_Union[_dispatch_pb2.Actual, _Mapping]] = ..., scheduler_address: _Optional[str] = ...) -> None: ...

class SelfTestRequest(_message.Message):
    __slots__ = ("circuit_id",)
    CIRCUIT_ID_FIELD_NUMBER: _ClassVar[int]
    circuit_id: str
    def __init__(self, circuit_id: _Optional[str] = ...) -> None: ...

class SelfTestResponse(_message.Message):
    __slots__ = ("step", "ok", "detail")
    STEP_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    step: str
    ok: bool
    detail: str
    def __init__(self, step: _Optional[str] = ..., ok: _Optional[bool] = ..., detail: _Optional[str] = ...) -> None: ...
