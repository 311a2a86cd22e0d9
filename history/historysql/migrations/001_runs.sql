-- Version 1 of the file. The table history itself is the protocol's and is made or adopted before this runs.

-- Rows that another engine has written and that no projection has seen yet.
CREATE INDEX history_foreign ON history (execution_id) WHERE writer IS NULL;

-- One row a run: its projection, and where its machine stands. Times are milliseconds since 1970.
CREATE TABLE executions (
    run             INTEGER PRIMARY KEY,
    execution_id    TEXT    NOT NULL UNIQUE,
    seq             INTEGER NOT NULL,
    phase           TEXT    NOT NULL,
    definition_name TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    driven          INTEGER NOT NULL,
    projection      TEXT    NOT NULL,
    problem         TEXT,
    position_seq    INTEGER NOT NULL DEFAULT 0,
    position        BLOB
);

-- A list without a filter merges the phases, so that an append moves two index entries and not three.
CREATE INDEX executions_by_phase ON executions (phase, updated_at DESC, execution_id);
CREATE INDEX executions_by_definition ON executions (definition_name, phase, updated_at DESC, execution_id);

-- The few runs that need a driver. Its column does not change from append to append.
CREATE INDEX executions_driven ON executions (execution_id) WHERE driven = 1;

CREATE TABLE definitions (
    number  INTEGER PRIMARY KEY,
    hash    TEXT NOT NULL UNIQUE,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    text    TEXT NOT NULL
);
CREATE INDEX definitions_by_name ON definitions (name);

CREATE TABLE timers (
    execution_id TEXT    NOT NULL,
    timer_key    TEXT    NOT NULL,
    due          INTEGER NOT NULL,
    PRIMARY KEY (execution_id, timer_key)
) WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due);

CREATE TABLE leases (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    owner        TEXT    NOT NULL,
    expires      INTEGER NOT NULL
) WITHOUT ROWID;
