"""The store on SQLite: one file, one connection, one writer.

WAL with synchronous=FULL: a batch is durable when `apply` returns. secure_delete=ON and a
truncated log after inputs were deleted: a secret input leaves no trace in the file. What a column
holds is written in `rows`; strict tables refuse a value of another type.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

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


def _upsert(table: str, columns: str) -> str:
    marks = ", ".join("?" for _ in columns.split(","))
    return f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"


_PUT_JOB = _upsert("jobs", rows.JOB_COLUMNS)
_PUT_INPUT = _upsert("inputs", rows.INPUT_COLUMNS)
_PUT_PARTITION = _upsert("partitions", rows.PARTITION_COLUMNS)
_PUT_LEASE = _upsert("leases", rows.LEASE_COLUMNS)
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
            _truncate_log(connection)
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

    def apply(self, changes: Sequence[Change]) -> None:
        """See `Store.apply`."""
        if self._connection is None:
            raise StoreError(f"{self._path} is closed")
        secrets_went = False
        try:
            with self._connection as connection:
                for change in changes:
                    secrets_went |= _apply(connection, change)
            if secrets_went:
                _truncate_log(self._connection)
        except apsw.Error as error:
            raise StoreError(f"{self._path}: {error}") from error

    def close(self) -> None:
        """See `Store.close`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _truncate_log(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


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


def _apply(connection: apsw.Connection, change: Change) -> bool:
    """Write one change; tell whether inputs were deleted."""
    match change:
        case PartitionRecord():
            connection.execute(_PUT_PARTITION, rows.partition_row(change))
        case LeaseRecord():
            connection.execute(_PUT_LEASE, rows.lease_row(change))
        case LeaseEnded():
            connection.execute("DELETE FROM leases WHERE lease_id = ?", (change.lease_id,))
        case JobRecord():
            connection.execute(_PUT_JOB, rows.job_row(change))
        case JobAccepted():
            connection.execute(_PUT_JOB, rows.job_row(change.job))
            connection.executemany(
                _PUT_INPUT,
                (
                    rows.input_row(change.job.job_id, index, spec)
                    for index, spec in enumerate(change.partitions)
                ),
            )
        case ProverRecord():
            connection.execute(_PUT_PROVER, rows.prover_row(change))
        case ProversForgotten():
            connection.executemany(
                "DELETE FROM provers WHERE prover_id = ?",
                ((prover_id,) for prover_id in change.prover_ids),
            )
        case PinRecord(pinned=None):
            connection.execute(
                "DELETE FROM pins WHERE manifest_sha256 = ? AND prover_id = ?",
                (change.manifest_sha256, change.prover_id),
            )
        case PinRecord():
            connection.execute(_PUT_PIN, rows.pin_row(change))
        case ClockMark():
            connection.execute(_PUT_MARK, ("clock", change.now_ns))
        case JobForgotten():
            for table in ("jobs", "inputs", "partitions"):
                connection.execute(f"DELETE FROM {table} WHERE job_id = ?", (change.job_id,))
            return True
        case InputsDropped():
            connection.execute(_DROP_INLINE, (change.job_id,))
            return connection.changes() > 0
        case _:
            assert_never(change)
    return False
