"""The store gives back what it was given, keeps no secrets, and is owned by one scheduler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from partita.scheduler import rows
from partita.scheduler.core.model import (
    BlobRef,
    Bytes,
    CrashMark,
    Failure,
    FailureKind,
    JobState,
    Mode,
    Outcome,
    PartitionSpec,
    PartitionState,
    Priority,
    StatementSource,
    Timings,
    Trust,
)
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
from partita.scheduler.schema import SCHEMA_VERSION
from partita.scheduler.sqlite import SqliteStore
from partita.scheduler.store import (
    Change,
    DataDirInUseError,
    DataDirLock,
    InputsDropped,
    StoreError,
    StoreUnreadableError,
)

SCHEMA_1 = Path(__file__).with_name("schemas") / "1.sql"
SECRET = b"a secret input that must leave no trace"
FAILURE = Failure(FailureKind.COMPUTE, "SICK", "détail\n", "gpu-0", 2, 17)
JOB = JobRecord(
    job_id="j1",
    job_seq=1,
    request_id="r/1",
    digest=b"d" * 32,
    circuit_id="c",
    manifest_sha256=b"m" * 32,
    input_format="wtns",
    priority=Priority.HIGH,
    state=JobState.OPEN,
    outcome=None,
    failure=None,
    deadline_ns=None,
    retain_ns=5,
    abandon_after_ns=None,
    created_ns=1 << 60,
    started_ns=None,
    ended_ns=None,
    labels=(("a", "1"), ("ä", "x")),
    retry_of="j0",
)
ACCEPTED = JobAccepted(
    JOB,
    (
        PartitionSpec(BlobRef(b"1" * 32, 39), SECRET, b"s" * 32, StatementSource.SUBMITTED),
        PartitionSpec(BlobRef(b"2" * 32, 1 << 40), None, None),
        PartitionSpec(BlobRef(b"3" * 32, 0), b"", b"", StatementSource.INPUT),
    ),
)
PARTITION = PartitionRecord(
    job_id="j1",
    index=1,
    state=PartitionState.PROVED,
    attempt=3,
    failures=(FAILURE, FAILURE),
    crashes=(CrashMark("l", "gpu-0", "i", 5),),
    taken=("1.1", "1.2"),
    proof=b"p" * 256,
    statement=b"",
    statement_source=StatementSource.PROVER,
    prover_id="gpu-1",
    proved_ns=99,
    timings=Timings(1, 2, 3, 4, 5, 6, 7),
)
LEASE = LeaseRecord("1.3", "j1", 2, 1, "gpu-0", "i", Bytes(7, 1 << 50))
PROVER = ProverRecord("gpu-0", Mode.CORDONED, Trust.QUARANTINED, "why", 2, 30, 4, "debits", 77)
PINS = (PinRecord(b"m" * 32, "", False), PinRecord(b"m" * 32, "gpu-0", True))
ENDED = replace(
    JOB, state=JobState.ENDED, outcome=Outcome.COMPLETED, started_ns=2, ended_ns=3, deadline_ns=9
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    store.open(1000)
    return store


def test_what_was_applied_is_restored_exactly(path: Path) -> None:
    store = opened(path)
    store.apply([ACCEPTED, PARTITION, LEASE, PROVER, ClockMark(123), *PINS])
    store.close()
    restored = SqliteStore(path).open(1000)
    assert restored.jobs == (ACCEPTED,)
    assert restored.partitions == (PARTITION,)
    assert restored.leases == (LEASE,)
    assert restored.provers == (PROVER,)
    assert restored.pins == PINS
    assert restored.clock_mark_ns == 123


def test_the_newest_row_of_each_key_wins_and_ended_ones_are_gone(path: Path) -> None:
    store = opened(path)
    failed = replace(ENDED, outcome=Outcome.FAILED, failure=FAILURE)
    store.apply([ACCEPTED, LEASE, replace(PARTITION, attempt=1)])
    store.apply([failed, LeaseEnded("1.3"), PARTITION, ClockMark(1), ClockMark(2)])
    store.apply([*PINS, replace(PINS[0], pinned=True), replace(PINS[1], pinned=None)])
    store.close()
    restored = SqliteStore(path).open(1000)
    assert [accepted.job for accepted in restored.jobs] == [failed]
    assert restored.jobs[0].partitions == ACCEPTED.partitions
    assert (restored.leases, restored.clock_mark_ns) == ((), 2)
    assert restored.pins == (replace(PINS[0], pinned=True),)
    assert restored.partitions == (PARTITION,)


def test_one_batch_leaves_what_its_changes_leave_one_by_one(tmp_path: Path) -> None:
    other = replace(JOB, job_id="j2", job_seq=JOB.job_seq + 1)
    leases = [replace(LEASE, lease_id=f"9.{i}", index=i) for i in range(450)]
    changes: list[Change] = [
        *(ACCEPTED, LEASE, LeaseEnded("1.3"), replace(LEASE, attempt=2), PARTITION),
        *leases,
        *(LeaseEnded(lease.lease_id) for lease in leases[:400]),
        *(JobAccepted(other, ACCEPTED.partitions), InputsDropped("j2"), ENDED, PROVER),
        *(replace(PARTITION, job_id="j2"), JobForgotten("j2"), replace(PARTITION, attempt=4)),
    ]
    restored = []
    for name, batches in (("whole", [changes]), ("apart", [[change] for change in changes])):
        store = opened(tmp_path / name)
        for batch in batches:
            store.apply(batch)
        store.close()
        restored.append(SqliteStore(tmp_path / name).open(1000))
    assert restored[0] == restored[1]
    assert [job.job for job in restored[0].jobs] == [ENDED]
    assert len(restored[0].leases) == 51
    assert restored[0].partitions == (replace(PARTITION, attempt=4),)


def test_a_scrub_that_a_reader_prevents_is_not_taken_for_done(path: Path) -> None:
    store = opened(path)
    store.apply([ACCEPTED])
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT * FROM jobs").fetchall()
    store.apply([InputsDropped("j1")])
    with pytest.raises(StoreError, match="another process reads the store"):
        store.scrub()
    reader.close()
    store.scrub()
    assert SECRET not in everything(path)
    store.close()


def test_a_forgotten_job_leaves_nothing(path: Path) -> None:
    store = opened(path)
    store.apply([ACCEPTED, PARTITION])
    store.apply([JobForgotten("j1")])
    restored = SqliteStore(path).open(1000)
    assert (restored.jobs, restored.partitions) == ((), ())
    store.close()


def test_each_opening_has_a_greater_epoch_not_below_the_wall_clock(path: Path) -> None:
    epochs = [SqliteStore(path).open(now_s).epoch for now_s in (1000, 1000, 500, 2000)]
    assert epochs == [1000, 1001, 1002, 2000]


@pytest.mark.parametrize(
    "how", ["dropped", "forgotten", "closed", "closed beside another", "restored"]
)
def test_an_input_that_is_no_longer_needed_leaves_no_trace_on_the_disk(
    path: Path, how: str
) -> None:
    store = opened(path)
    store.apply([ACCEPTED])
    assert SECRET in everything(path)
    if how == "dropped":
        assert store.apply([InputsDropped("j1")])
        store.scrub()
    elif how == "forgotten":
        assert store.apply([JobForgotten("j1")])
        store.scrub()
    elif how.startswith("closed"):
        other = apsw.Connection(str(path))
        if "beside" in how:
            other.execute("SELECT * FROM jobs").fetchall()
        store.apply([InputsDropped("j1")])
        store.close()
    else:
        store.apply([ENDED])
        store.close()
        store = opened(path)
    assert SECRET not in everything(path)
    store.close()


def everything(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_the_file_is_private(path: Path) -> None:
    opened(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_batch_that_fails_leaves_nothing_behind(path: Path) -> None:
    store = opened(path)
    with pytest.raises(StoreError):
        store.apply([ACCEPTED, replace(PARTITION, proved_ns="no number")])  # type: ignore[arg-type]
    store.apply([PROVER])
    restored = SqliteStore(path).open(1000)
    assert (restored.jobs, restored.provers) == ((), (PROVER,))
    store.close()


def test_a_store_of_a_newer_version_is_refused_by_both_versions(path: Path) -> None:
    opened(path).close()
    _run(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    newer = f"version {SCHEMA_VERSION + 1}, this program reads versions up to {SCHEMA_VERSION}"
    with pytest.raises(StoreUnreadableError, match=newer):
        SqliteStore(path).open(1000)
    assert path.read_bytes() == before


def _run(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path))
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def _shape(path: Path) -> set[tuple[Any, ...]]:
    return set(
        _run(
            path,
            'SELECT t.name, c.name, c.type, c."notnull", c.pk FROM sqlite_schema t '
            "JOIN pragma_table_info(t.name) c WHERE t.type = 'table'",
        )
    )


def _first_version(path: Path) -> None:
    _run(path, SCHEMA_1.read_text())
    job = rows.job_row(replace(JOB, retry_of=""))[:-1]
    columns = rows.JOB_COLUMNS.removesuffix(", retry_of")
    connection = apsw.Connection(str(path))
    connection.execute(
        f"INSERT INTO jobs ({columns}) VALUES ({', '.join('?' for _ in job)})", job
    ).fetchall()
    connection.execute("INSERT INTO provers VALUES ('gpu-0', 2, 1, 'why', 2, 30, 4)").fetchall()
    connection.close()


def test_a_store_of_an_older_version_is_brought_up_and_keeps_its_rows(
    path: Path, tmp_path: Path
) -> None:
    _first_version(path)
    store = opened(path)
    store.apply([*PINS, PROVER])
    store.close()
    assert _run(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    opened(tmp_path / "new.db").close()
    assert _shape(path) == _shape(tmp_path / "new.db")
    restored = SqliteStore(path).open(1000)
    assert [job.job for job in restored.jobs] == [replace(JOB, retry_of="")]
    assert (restored.provers, restored.pins) == ((PROVER,), PINS)


def test_an_upgrade_that_fails_leaves_the_older_store(path: Path) -> None:
    _first_version(path)
    _run(path, "CREATE TABLE pins (in_the_way)")
    before = _shape(path)
    with pytest.raises(StoreError, match="pins"):
        SqliteStore(path).open(1000)
    assert _run(path, "PRAGMA user_version") == [(1,)]
    assert _shape(path) == before


def test_forgotten_provers_leave_nothing(path: Path) -> None:
    store = opened(path)
    store.apply([PROVER, replace(PROVER, prover_id="gpu-1"), replace(PROVER, prover_id="gpu-2")])
    store.apply([ProversForgotten(("gpu-0", "gpu-2", "never seen"))])
    store.close()
    assert [p.prover_id for p in SqliteStore(path).open(1000).provers] == ["gpu-1"]


def test_a_file_that_is_no_store_is_refused(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnreadableError, match="not a store"):
        SqliteStore(path).open(1000)


def test_a_data_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    lock = DataDirLock(tmp_path)
    with pytest.raises(DataDirInUseError, match="in use by another scheduler"):
        DataDirLock(tmp_path)
    lock.release()
    DataDirLock(tmp_path).release()


def test_writing_is_durable_before_it_is_answered(path: Path) -> None:
    store = opened(path)
    connection = store._connection
    assert connection is not None
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("secure_delete") == 1
    store.close()
