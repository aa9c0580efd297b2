"""What surrounds a circom witness program inside WebAssembly.

Both sides of a program are WebAssembly modules of our own, so that no Python function is called
from a running program: it costs nothing per signal, and host exceptions of two threads cannot
meet (the wasmtime package keeps the last one in a global).

* `RUNTIME` is what the program imports: it keeps the code of the exception that the program
  raised and a bounded record of what it said, and ends the program by a trap.
* `COURIER` drives the program: `feed` sets all input signals from an array of records, `fetch`
  copies the whole witness out, each in one call.
"""

from __future__ import annotations

import struct
from typing import Final

RUNTIME_MODULE: Final = "runtime"
RUNTIME_IMPORTS: Final = (
    "exceptionHandler",
    "printErrorMessage",
    "writeBufferMessage",
    "showSharedRWMemory",
)

ERROR_TEXT, LOG_TEXT, LOG_VALUE = 1, 2, 3
"""Tags of the records in `said`: tag byte, text, zero byte; a value has no text."""

RUNTIME: Final = f"""
(module
  (type $get_char (func (result i32)))
  (memory (export "said") 1 1)
  (table $program (export "program") 1 1 funcref)
  (global $length (export "length") (mut i32) (i32.const 0))
  (global $code (export "code") (mut i32) (i32.const 0))
  (func $put (param $byte i32)
    (if (i32.lt_u (global.get $length) (i32.const 65536))
      (then
        (i32.store8 (global.get $length) (local.get $byte))
        (global.set $length (i32.add (global.get $length) (i32.const 1))))))
  (func $record (param $tag i32)
    (local $char i32)
    (call $put (local.get $tag))
    (if (ref.is_null (table.get $program (i32.const 0))) (then (call $put (i32.const 0)) (return)))
    (loop $next
      (local.set $char (call_indirect $program (type $get_char) (i32.const 0)))
      (call $put (local.get $char))
      (br_if $next (local.get $char))))
  (func (export "exceptionHandler") (param $why i32)
    (global.set $code (local.get $why))
    unreachable)
  (func (export "printErrorMessage") (call $record (i32.const {ERROR_TEXT})))
  (func (export "writeBufferMessage") (call $record (i32.const {LOG_TEXT})))
  (func (export "showSharedRWMemory")
    (call $put (i32.const {LOG_VALUE}))
    (call $put (i32.const 0))))
"""

COURIER: Final = """
(module
  (import "program" "memory" (memory $theirs 0))
  (import "program" "getSharedRWMemoryStart" (func $shared (result i32)))
  (import "program" "setInputSignal" (func $set (param i32 i32 i32)))
  (import "program" "getWitness" (func $get (param i32)))
  (memory $ours (export "cargo") 0)
  (func (export "feed") (param $count i32)
    (local $at i32)
    (if (i32.eqz (local.get $count)) (then (return)))
    (loop $next
      (memory.copy $theirs $ours
        (call $shared) (i32.add (local.get $at) (i32.const 16)) (i32.const 32))
      (call $set
        (i32.load $ours (local.get $at))
        (i32.load $ours offset=4 (local.get $at))
        (i32.load $ours offset=8 (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 48)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $next (local.get $count))))
  (func (export "fetch") (param $count i32)
    (local $wire i32)
    (loop $next
      (call $get (local.get $wire))
      (memory.copy $ours $theirs
        (i32.shl (local.get $wire) (i32.const 5)) (call $shared) (i32.const 32))
      (local.set $wire (i32.add (local.get $wire) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $wire) (local.get $count))))))
"""

_RECORD: Final = struct.Struct("<IIII32s")


def fnv1a_64(name: str) -> int:
    """The 64-bit FNV-1a hash of a signal's name, by which a program knows it.

    Source: Fowler, Noll, Vo, and Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
    """
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001B3 % (1 << 64)
    return digest


def input_record(name_hash: int, index: int, value: int) -> bytes:
    """One value of one signal as `feed` takes it."""
    return _RECORD.pack(
        name_hash >> 32, name_hash & 0xFFFFFFFF, index, 0, value.to_bytes(32, "little")
    )


def said(record: bytes) -> str:
    """The program's own words: log lines, then its error lines.

    Values that were logged appear as "<value>": they are part of the witness.
    """
    errors: list[str] = []
    logs: list[list[str]] = [[]]
    for item in record.split(b"\0"):
        if not item:
            continue
        tag, text = item[0], item[1:].decode(errors="replace")
        if tag == ERROR_TEXT:
            errors.append(text.strip())
        elif tag == LOG_VALUE:
            logs[-1].append("<value>")
        elif text == "\n":
            logs.append([])
        else:
            logs[-1].append(text.strip())
    lines = [" ".join(words) for words in logs if words] + [line for line in errors if line]
    return "; ".join(lines)
