"""The store on SQLite: one file, one connection, one writer.

WAL with synchronous=FULL: a batch is durable when `apply` returns. secure_delete=ON and a log that
`scrub` truncates after inputs were deleted: a secret input leaves no trace in the files. What a
column holds is written in `rows`; strict tables refuse a value of another type.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar, assert_never

import apsw

from partita.scheduler import rows
from partita.scheduler.core.events import Restored
from partita.scheduler.core.model import JobState, Outcome
from partita.scheduler.core.records import (
    ClockMark,
    JobAccepted,
    JobForgotten,
    JobRecord,
    LeaseEnded,
    LeaseRecord,
    PartitionRecord,
    PinRecord,
    ProverRecord,
    ProversForgotten,
)
from partita.scheduler.schema import SCHEMA_VERSION, prepare
from partita.scheduler.store import Change, InputsDropped, StoreError, StoreUnreadableError
from partita.service import logs

_log = logs.get("store")


_T = TypeVar("_T")
_Rare = ProverRecord | ProversForgotten | PinRecord | ClockMark | JobForgotten | InputsDropped
_ROWS_AT_ONCE = 200
"""Keeps a statement within SQLite's 32,766 variables, and short enough to be parsed quickly."""


def _upsert(table: str, columns: str, n_rows: int = 1) -> str:
    marks = ", ".join("?" * (columns.count(",") + 1))
    values = ", ".join([f"({marks})"] * n_rows)
    return f"INSERT OR REPLACE INTO {table} ({columns}) VALUES {values}"


_PUT_PROVER = _upsert("provers", rows.PROVER_COLUMNS)
_PUT_PIN = _upsert("pins", rows.PIN_COLUMNS)
_PUT_MARK = _upsert("marks", "name, value")
_DROP_INLINE = "UPDATE inputs SET inline = NULL WHERE job_id = ? AND inline IS NOT NULL"


class SqliteStore:
    """A `Store` in one SQLite file.

    Args:
        path: the file; made with mode 0600 if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: apsw.Connection | None = None

    def open(self, now_s: int) -> Restored:
        """See `Store.open`."""
        try:
            connection = self._connect()
            with connection:
                found = prepare(connection, self._path)
                restored = _read(connection, now_s)
            if not _truncate_log(connection):
                _log.warning("store.unscrubbed", error=_BUSY)
            if found not in (0, SCHEMA_VERSION):
                _log.info("store.upgraded", path=str(self._path), was=found, now=SCHEMA_VERSION)
        except apsw.NotADBError as error:
            raise StoreUnreadableError(
                f"{self._path} is not a store of Partita ({error}): move it away, or restore it "
                "from a backup"
            ) from error
        except apsw.Error as error:
            raise StoreError(f"{self._path}: {error}") from error
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        return restored

    def _connect(self) -> apsw.Connection:
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        os.close(descriptor)
        connection = apsw.Connection(str(self._path))
        self._connection = connection
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
            "wal_autocheckpoint = 4000",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection

    def apply(self, changes: Sequence[Change]) -> bool:
        """See `Store.apply`."""
        if self._connection is None:
            raise StoreError(f"{self._path} is closed")
        batch = _Batch(self._connection)
        try:
            with self._connection:
                for change in changes:
                    batch.add(change)
                batch.write()
        except apsw.Error as error:
            raise StoreError(f"{self._path}: {error}") from error
        return batch.dropped_inputs

    def scrub(self) -> None:
        """See `Store.scrub`."""
        if self._connection is None:
            raise StoreError(f"{self._path} is closed")
        try:
            done = _truncate_log(self._connection)
        except apsw.Error as error:
            raise StoreError(f"{self._path}: {error}") from error
        if not done:
            raise StoreError(f"{self._path}: {_BUSY}")

    def close(self) -> None:
        """See `Store.close`."""
        if self._connection is None:
            return
        try:
            # A connection of another process keeps the log in place, if it is not emptied first.
            if not _truncate_log(self._connection):
                _log.warning("store.unscrubbed", error=_BUSY)
        except apsw.Error as error:
            _log.warning("store.unscrubbed", error=str(error))
        self._connection.close()
        self._connection = None


_BUSY = "another process reads the store, so deleted inputs stay in its log until it ends"


def _truncate_log(connection: apsw.Connection) -> bool:
    """Tell whether the log is empty now; another reader keeps it."""
    ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy


def _read(connection: apsw.Connection, now_s: int) -> Restored:
    connection.execute(
        "UPDATE inputs SET inline = NULL WHERE inline IS NOT NULL AND job_id IN "
        "(SELECT job_id FROM jobs WHERE state = ? AND outcome = ?)",
        (int(JobState.ENDED), int(Outcome.COMPLETED)),
    )
    marks: dict[str, int] = dict(connection.execute("SELECT name, value FROM marks"))
    epoch = max(marks.get("epoch", 0) + 1, now_s)
    connection.execute(_PUT_MARK, ("epoch", epoch))
    inputs: dict[str, list[rows.Row]] = {}
    for row in connection.execute(f"SELECT {rows.INPUT_COLUMNS} FROM inputs ORDER BY job_id, idx"):
        inputs.setdefault(row[0], []).append(row)
    return Restored(
        epoch=epoch,
        clock_mark_ns=marks.get("clock", 0),
        jobs=tuple(
            JobAccepted(
                rows.job_of(row), tuple(rows.input_of(value) for value in inputs.get(row[0], ()))
            )
            for row in connection.execute(f"SELECT {rows.JOB_COLUMNS} FROM jobs ORDER BY job_seq")
        ),
        partitions=tuple(
            rows.partition_of(row)
            for row in connection.execute(
                f"SELECT {rows.PARTITION_COLUMNS} FROM partitions ORDER BY job_id, idx"
            )
        ),
        leases=tuple(
            rows.lease_of(row)
            for row in connection.execute(f"SELECT {rows.LEASE_COLUMNS} FROM leases")
        ),
        provers=tuple(
            rows.prover_of(row)
            for row in connection.execute(f"SELECT {rows.PROVER_COLUMNS} FROM provers")
        ),
        pins=tuple(
            rows.pin_of(row) for row in connection.execute(f"SELECT {rows.PIN_COLUMNS} FROM pins")
        ),
    )


class _Batch:
    """Changes of one transaction, put together: of each row only what it becomes in the end.

    Few long statements instead of many short ones: each step of SQLite is a wait for Python's
    interpreter lock, and while the event loop is busy that takes milliseconds.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._jobs: dict[str, rows.Row] = {}
        self._inputs: list[rows.Row] = []
        self._partitions: dict[tuple[str, int], rows.Row] = {}
        self._leases: dict[str, rows.Row] = {}
        self._ended_leases: dict[str, None] = {}
        self.dropped_inputs = False
        """Whether inputs were deleted."""

    def add(self, change: Change) -> None:
        """Take one change."""
        match change:
            case PartitionRecord():
                self._partitions[change.job_id, change.index] = rows.partition_row(change)
            case LeaseRecord():
                self._ended_leases.pop(change.lease_id, None)
                self._leases[change.lease_id] = rows.lease_row(change)
            case LeaseEnded():
                self._leases.pop(change.lease_id, None)
                self._ended_leases[change.lease_id] = None
            case JobRecord():
                self._jobs[change.job_id] = rows.job_row(change)
            case JobAccepted():
                job_id = change.job.job_id
                self._jobs[job_id] = rows.job_row(change.job)
                self._inputs += (
                    rows.input_row(job_id, i, spec) for i, spec in enumerate(change.partitions)
                )
            case _:
                self._apply(change)

    def _apply(self, change: _Rare) -> None:
        """Write one change of a kind that is rare; all that came before it is written first."""
        self.write()
        execute = self._connection.execute
        match change:
            case ProverRecord():
                execute(_PUT_PROVER, rows.prover_row(change))
            case ProversForgotten():
                self._delete("provers", "prover_id", change.prover_ids)
            case PinRecord(pinned=None):
                execute(
                    "DELETE FROM pins WHERE manifest_sha256 = ? AND prover_id = ?",
                    (change.manifest_sha256, change.prover_id),
                )
            case PinRecord():
                execute(_PUT_PIN, rows.pin_row(change))
            case ClockMark():
                execute(_PUT_MARK, ("clock", change.now_ns))
            case JobForgotten():
                for table in ("jobs", "inputs", "partitions"):
                    execute(f"DELETE FROM {table} WHERE job_id = ?", (change.job_id,))
                self.dropped_inputs = True
            case InputsDropped():
                execute(_DROP_INLINE, (change.job_id,))
                self.dropped_inputs |= self._connection.changes() > 0
            case _:
                assert_never(change)

    def write(self) -> None:
        """Write what was put together."""
        self._put("jobs", rows.JOB_COLUMNS, self._jobs.values())
        self._put("inputs", rows.INPUT_COLUMNS, self._inputs)
        self._put("partitions", rows.PARTITION_COLUMNS, self._partitions.values())
        self._put("leases", rows.LEASE_COLUMNS, self._leases.values())
        self._delete("leases", "lease_id", self._ended_leases)
        for table in (self._jobs, self._inputs, self._partitions, self._leases):
            table.clear()
        self._ended_leases.clear()

    def _put(self, table: str, columns: str, found: Iterable[rows.Row]) -> None:
        for some in _some_at_once(found):
            values = [value for row in some for value in row]
            self._connection.execute(_upsert(table, columns, len(some)), values)

    def _delete(self, table: str, key: str, found: Iterable[str]) -> None:
        for some in _some_at_once(found):
            marks = ", ".join("?" * len(some))
            self._connection.execute(f"DELETE FROM {table} WHERE {key} IN ({marks})", some)


def _some_at_once(found: Iterable[_T]) -> Iterator[tuple[_T, ...]]:
    rest = iter(found)
    while some := tuple(islice(rest, _ROWS_AT_ONCE)):
        yield some
