-- Version 1. Released: never changed again, only followed by another file.
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,        -- order of saving
    run_id TEXT NOT NULL UNIQUE,
    started INTEGER NOT NULL,       -- seconds since 1970, UTC
    verb TEXT NOT NULL,
    host TEXT NOT NULL,
    label TEXT,
    note TEXT,
    partial INTEGER NOT NULL,
    method INTEGER NOT NULL,
    summary TEXT NOT NULL,          -- JSON: what lists show; its label is the one at the time of saving
    record BLOB NOT NULL,           -- JSON, zlib
    page BLOB                       -- what was printed, ANSI text, zlib
) STRICT;
CREATE INDEX runs_by_start ON runs (started, seq);
CREATE INDEX runs_by_label ON runs (label) WHERE label IS NOT NULL;

CREATE TABLE run_targets (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    path TEXT NOT NULL
) STRICT;
CREATE INDEX run_targets_by_run ON run_targets (run);
CREATE INDEX run_targets_by_path ON run_targets (path);

CREATE TABLE run_disks (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name TEXT NOT NULL,
    model TEXT,
    serial TEXT
) STRICT;
CREATE INDEX run_disks_by_run ON run_disks (run);
CREATE INDEX run_disks_by_serial ON run_disks (serial) WHERE serial IS NOT NULL;
