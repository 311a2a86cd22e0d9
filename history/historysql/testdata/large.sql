CREATE TABLE history (
    execution_id          TEXT    NOT NULL,
    seq                   INTEGER NOT NULL,
    kind                  TEXT    NOT NULL,
    name                  TEXT    NOT NULL,
    payload_json          TEXT    NOT NULL,
    created_at            TEXT    NOT NULL,
    record_schema_version INTEGER NOT NULL DEFAULT 1,
    writer                INTEGER,
    PRIMARY KEY (execution_id, seq)
);
CREATE INDEX history_foreign ON history (execution_id) WHERE writer IS NULL;
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
CREATE TABLE "executions" (
    run             INTEGER PRIMARY KEY,
    execution_id    TEXT    NOT NULL UNIQUE,
    seq             INTEGER NOT NULL,
    phase           TEXT    NOT NULL,
    definition_name TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    listed_at       INTEGER NOT NULL,
    driven          INTEGER NOT NULL,
    projection      TEXT    NOT NULL,
    problem         TEXT,
    position_seq    INTEGER NOT NULL DEFAULT 0,
    position        BLOB
);
CREATE INDEX executions_by_phase ON executions (phase, listed_at DESC);
CREATE INDEX executions_by_definition ON executions (definition_name, phase, listed_at DESC);
CREATE INDEX executions_driven ON executions (execution_id) WHERE driven = 1;
CREATE TABLE blobs (
    number  INTEGER PRIMARY KEY,
    hash    TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL
);
CREATE TABLE blob_refs (
    execution_id TEXT    NOT NULL,
    blob         INTEGER NOT NULL,
    PRIMARY KEY (execution_id, blob)
) WITHOUT ROWID;
CREATE INDEX blob_refs_by_blob ON blob_refs (blob);
INSERT INTO history VALUES ('large', 1, 'event', 'ActivityCompleted', '{"executionId":"large","nodeId":"n","result":{"$$n":0,"list":["a"],"text":{"$blob":"d5c1ba3c5a428f24fc76e98fd94cca09ba500e615b9d2c32ce7c932fe2deff75"}}}', '2026-11-21T01:00:00.000Z', 1000, 1);
INSERT INTO history VALUES ('large', 2, 'event', 'StateUpdated', '{"executionId":"large","nodeId":"n","state":{"$snapshot":{"size":1108,"state":{"$$n":0,"list":["a"],"text":{"$blob":"d5c1ba3c5a428f24fc76e98fd94cca09ba500e615b9d2c32ce7c932fe2deff75"}}}}}', '2026-11-21T01:00:00.000Z', 1000, 1);
INSERT INTO history VALUES ('large', 3, 'event', 'ActivityCompleted', '{"executionId":"large","nodeId":"n","result":{"$$n":1,"list":["a","b"],"text":{"$blob":"d5c1ba3c5a428f24fc76e98fd94cca09ba500e615b9d2c32ce7c932fe2deff75"}}}', '2026-11-21T01:00:00.000Z', 1000, 1);
INSERT INTO history VALUES ('large', 4, 'event', 'StateUpdated', '{"executionId":"large","nodeId":"n","state":{"$delta":{"base":2,"hash":"03f9d29773b83da8ccc1336c17c11ddbebac405a9ede7bf8299f66d63febb2aa","whole":2,"size":1108,"since":557,"changes":{"in":{"list":{"add":["b"]}},"set":{"$$n":1}}}}}', '2026-11-21T01:00:00.000Z', 1000, 1);
INSERT INTO executions VALUES (1, 'large', 4, 'running', '', 1795222800000, 1795222800000, 1795222800000, 0, '{"seq":4,"created":"2026-11-21T01:00:00.000Z","updated":"2026-11-21T01:00:00.000Z","node":"n","stateSeq":4}', NULL, 0, NULL);
INSERT INTO blobs VALUES (1, 'd5c1ba3c5a428f24fc76e98fd94cca09ba500e615b9d2c32ce7c932fe2deff75', '"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"');
INSERT INTO blob_refs VALUES ('large', 1);
PRAGMA application_id = 1096241256;
PRAGMA user_version = 3;
