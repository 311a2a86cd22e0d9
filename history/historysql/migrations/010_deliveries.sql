-- Version 10 of the file. What targets are notified of: an event's body stands once, however many targets it goes to, and apart from
-- what changes with each attempt.
CREATE TABLE delivery_events (
    number       INTEGER PRIMARY KEY,
    event_id     TEXT    NOT NULL UNIQUE,
    execution_id TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    event        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    body         TEXT    NOT NULL
);
CREATE INDEX delivery_events_by_run ON delivery_events (execution_id);

CREATE TABLE deliveries (
    number       INTEGER PRIMARY KEY,
    delivery_id  TEXT    NOT NULL UNIQUE,
    event_id     TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    due          INTEGER NOT NULL,
    step         INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    leased       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX deliveries_by_run ON deliveries (execution_id, state);
CREATE INDEX deliveries_by_state ON deliveries (state);
CREATE INDEX deliveries_due ON deliveries (target, due) WHERE state = 'pending';

CREATE TABLE delivery_attempts (
    delivery INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    process  TEXT    NOT NULL,
    began_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL DEFAULT 0,
    outcome  TEXT    NOT NULL DEFAULT '',
    status   INTEGER NOT NULL DEFAULT 0,
    error    TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (delivery, attempt)
) WITHOUT ROWID;
