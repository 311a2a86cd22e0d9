-- The table of the protocol (spec: cli-and-config, 5.2) with one more column: see FORMAT.md.
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
