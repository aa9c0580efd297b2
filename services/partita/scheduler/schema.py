"""The schema of the SQLite store, its version, and how an older store becomes a current one.

The rule: `user_version` of the file is the version. A new file gets the current schema. An older
file is brought up one version after another, all in the transaction that opens it, so a stop in
the middle leaves the older file. A newer file is refused by both versions: a program never guesses
what a later one meant, and there is no way back but the backup taken before.

Every change of a table raises SCHEMA_VERSION and adds the step that leads there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.scheduler.store import StoreUnreadableError

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

SCHEMA_VERSION = 2

UPGRADES = {
    1: """
    ALTER TABLE jobs ADD COLUMN retry_of TEXT NOT NULL DEFAULT '';
    ALTER TABLE provers ADD COLUMN trust_reason TEXT NOT NULL DEFAULT '';
    ALTER TABLE provers ADD COLUMN quarantined_until_ns INTEGER;
    CREATE TABLE pins (
        manifest_sha256 BLOB NOT NULL, prover_id TEXT NOT NULL, pinned INTEGER NOT NULL,
        PRIMARY KEY (manifest_sha256, prover_id)
    ) STRICT;
    """,
}
"""Version -> what makes the next one of it."""

_SCHEMA = """
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, job_seq INTEGER NOT NULL UNIQUE, request_id TEXT NOT NULL,
    digest BLOB NOT NULL, circuit_id TEXT NOT NULL, manifest_sha256 BLOB NOT NULL,
    input_format TEXT NOT NULL, priority INTEGER NOT NULL, state INTEGER NOT NULL,
    outcome INTEGER, failure TEXT, deadline_ns INTEGER, retain_ns INTEGER NOT NULL,
    abandon_after_ns INTEGER, created_ns INTEGER NOT NULL, started_ns INTEGER, ended_ns INTEGER,
    labels TEXT NOT NULL, retry_of TEXT NOT NULL
) STRICT;
CREATE TABLE inputs (
    job_id TEXT NOT NULL, idx INTEGER NOT NULL, sha256 BLOB NOT NULL, size_bytes INTEGER NOT NULL,
    inline BLOB, statement BLOB, statement_source INTEGER NOT NULL, PRIMARY KEY (job_id, idx)
) STRICT;
CREATE TABLE partitions (
    job_id TEXT NOT NULL, idx INTEGER NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL,
    failures TEXT NOT NULL, crashes TEXT NOT NULL, taken TEXT NOT NULL, proof BLOB NOT NULL,
    statement BLOB NOT NULL, statement_source INTEGER NOT NULL, prover_id TEXT NOT NULL,
    proved_ns INTEGER, timings TEXT NOT NULL, PRIMARY KEY (job_id, idx)
) STRICT;
CREATE TABLE leases (
    lease_id TEXT PRIMARY KEY, job_id TEXT NOT NULL, idx INTEGER NOT NULL,
    attempt INTEGER NOT NULL, prover_id TEXT NOT NULL, instance_id TEXT NOT NULL,
    reserved_host INTEGER NOT NULL, reserved_device INTEGER NOT NULL
) STRICT;
CREATE TABLE provers (
    prover_id TEXT PRIMARY KEY, mode INTEGER NOT NULL, trust INTEGER NOT NULL,
    reason TEXT NOT NULL, debits INTEGER NOT NULL, proved INTEGER NOT NULL, failed INTEGER NOT NULL,
    trust_reason TEXT NOT NULL, quarantined_until_ns INTEGER
) STRICT;
CREATE TABLE pins (
    manifest_sha256 BLOB NOT NULL, prover_id TEXT NOT NULL, pinned INTEGER NOT NULL,
    PRIMARY KEY (manifest_sha256, prover_id)
) STRICT;
"""


def prepare(connection: apsw.Connection, path: Path) -> int:
    """Make the schema current, inside the caller's transaction; return the version found.

    0 is that of a new file.

    Raises:
        StoreUnreadableError: a later program wrote the file.
    """
    found = int(connection.pragma("user_version"))
    if found > SCHEMA_VERSION:
        raise StoreUnreadableError(
            f"{path} has schema version {found}, this program reads versions up to "
            f"{SCHEMA_VERSION}: install the version of Partita that wrote it, or restore the "
            "backup of before"
        )
    if found == 0:
        connection.execute(_SCHEMA)
    for version in range(found or SCHEMA_VERSION, SCHEMA_VERSION):
        connection.execute(UPGRADES[version])
    if found != SCHEMA_VERSION:
        connection.pragma("user_version", SCHEMA_VERSION)
    return found
