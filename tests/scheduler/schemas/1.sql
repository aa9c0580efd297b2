-- The tables of a store of schema version 1.
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, job_seq INTEGER NOT NULL UNIQUE, request_id TEXT NOT NULL,
    digest BLOB NOT NULL, circuit_id TEXT NOT NULL, manifest_sha256 BLOB NOT NULL,
    input_format TEXT NOT NULL, priority INTEGER NOT NULL, state INTEGER NOT NULL,
    outcome INTEGER, failure TEXT, deadline_ns INTEGER, retain_ns INTEGER NOT NULL,
    abandon_after_ns INTEGER, created_ns INTEGER NOT NULL, started_ns INTEGER, ended_ns INTEGER,
    labels TEXT NOT NULL
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
    reason TEXT NOT NULL, debits INTEGER NOT NULL, proved INTEGER NOT NULL, failed INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
