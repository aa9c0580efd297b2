import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from partita.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UploadRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: _types_pb2.BlobRef
    chunk: bytes
    def __init__(self, header: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class UploadResponse(_message.Message):
    __slots__ = ("blob", "kept_until")
    BLOB_FIELD_NUMBER: _ClassVar[int]
    KEPT_UNTIL_FIELD_NUMBER: _ClassVar[int]
    blob: _types_pb2.BlobRef
    kept_until: _timestamp_pb2.Timestamp
    def __init__(self, blob: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., kept_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DownloadRequest(_message.Message):
    __slots__ = ("blob", "offset")
    BLOB_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    blob: _types_pb2.BlobRef
    offset: int
    def __init__(self, blob: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class DownloadResponse(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    def __init__(self, chunk: _Optional[bytes] = ...) -> None: ...

class FindMissingRequest(_message.Message):
    __slots__ = ("blobs",)
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedCompositeFieldContainer[_types_pb2.BlobRef]
    def __init__(self, blobs: _Optional[_Iterable[_Union[_types_pb2.BlobRef, _Mapping]]] = ...) -> None: ...

class FindMissingResponse(_message.Message):
    __slots__ = ("missing",)
    MISSING_FIELD_NUMBER: _ClassVar[int]
    missing: _containers.RepeatedCompositeFieldContainer[_types_pb2.BlobRef]
    def __init__(self, missing: _Optional[_Iterable[_Union[_types_pb2.BlobRef, _Mapping]]] = ...) -> None: ...
