-- The table that this engine shares with others (spec: cli-and-config, 5.2). The column writer is this engine's: 1 in
-- rows that it wrote, 0 in rows of others that its projection has seen, NULL in rows of others that it has not.
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
