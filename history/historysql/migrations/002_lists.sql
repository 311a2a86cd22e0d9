-- Version 2 of the file. An append moves an entry of the lists' indexes only when the run's phase or its tenth of a
-- second changes: listed_at is updated_at rounded down to 100 ms. Within one tenth of a second a page sorts.
CREATE TABLE executions_2 (
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
INSERT INTO executions_2 (run, execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection, problem, position_seq, position)
SELECT run, execution_id, seq, phase, definition_name, created_at, updated_at, updated_at - (updated_at % 100 + 100) % 100, driven, projection, problem, position_seq, position
FROM executions ORDER BY run;
DROP TABLE executions;
ALTER TABLE executions_2 RENAME TO executions;

CREATE INDEX executions_by_phase ON executions (phase, listed_at DESC);
CREATE INDEX executions_by_definition ON executions (definition_name, phase, listed_at DESC);
CREATE INDEX executions_driven ON executions (execution_id) WHERE driven = 1;
