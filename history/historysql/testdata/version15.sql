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
, signature TEXT NOT NULL DEFAULT '', stored_at INTEGER NOT NULL DEFAULT 0);
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
, bytes INTEGER NOT NULL DEFAULT 0, owner TEXT, disowned INTEGER);
CREATE INDEX executions_by_phase ON executions (phase, listed_at DESC);
CREATE INDEX executions_by_definition ON executions (definition_name, phase, listed_at DESC);
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
CREATE TABLE processes (
    process TEXT    NOT NULL PRIMARY KEY,
    expires INTEGER NOT NULL
, about TEXT) WITHOUT ROWID;
CREATE INDEX executions_driven ON executions (owner, driven, execution_id) WHERE owner IS NOT NULL OR driven = 1;
CREATE TABLE clocks (
    boot   TEXT    NOT NULL PRIMARY KEY,
    leases INTEGER NOT NULL,
    floor  INTEGER NOT NULL,
    seen   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE keys (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE positions (
    execution_id TEXT NOT NULL PRIMARY KEY,
    position     BLOB NOT NULL
) WITHOUT ROWID;
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
CREATE TABLE run_links (
    to_id   TEXT    NOT NULL PRIMARY KEY,
    from_id TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    actor   TEXT,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_links_by_origin ON run_links (from_id, at, to_id);
CREATE TABLE handled (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    note         TEXT,
    retry_id     TEXT,
    actor        TEXT,
    at           INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE run_labels (
    run   INTEGER NOT NULL,
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE INDEX run_labels_by_value ON run_labels (name, value, run);
CREATE TABLE ready (
    run      INTEGER PRIMARY KEY,
    lane     TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    turn     INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    since    INTEGER NOT NULL
);
CREATE INDEX ready_by_turn ON ready (lane, priority DESC, turn);
CREATE INDEX ready_by_age ON ready (lane, since);
CREATE INDEX ready_by_tenant ON ready (tenant, turn);
INSERT INTO history VALUES ('v1-done', 1, 'event', 'ExecutionStarted', '{"executionId":"v1-done","workflowName":"w","workflowVersion":"1","inputKeys":[],"definitionHash":"h","activityExecutionMode":"in_process"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 2, 'command', 'ScheduleNode', '{"executionId":"v1-done","nodeId":"begin"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 3, 'event', 'NodeScheduled', '{"executionId":"v1-done","nodeId":"begin"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 4, 'command', 'CompleteNode', '{"executionId":"v1-done","nodeId":"begin","output":{}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 5, 'event', 'StateUpdated', '{"executionId":"v1-done","nodeId":"begin","state":{}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 6, 'command', 'ScheduleNode', '{"executionId":"v1-done","nodeId":"end"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 7, 'event', 'NodeScheduled', '{"executionId":"v1-done","nodeId":"end"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 8, 'command', 'CompleteNode', '{"executionId":"v1-done","nodeId":"end","output":{}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-done', 9, 'event', 'ExecutionCompleted', '{"executionId":"v1-done","result":null}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-delegate', 1, 'event', 'ExecutionStarted', '{"executionId":"v1-delegate","inputKeys":[],"labels":{"kept":"yes"}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-delegate', 2, 'event', 'ActivityRequested', '{"executionId":"v1-delegate","nodeId":"d","nodeType":"agent_delegate","agentId":"coder","protocol":"a2a","delegateCorrelationId":"c","delegateInput":{"task":"T"}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 1, 'event', 'ExecutionStarted', '{"executionId":"v1-host","workflowName":"w","workflowVersion":"1","inputKeys":[],"definitionHash":"h","activityExecutionMode":"host_mediated"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 2, 'command', 'ScheduleNode', '{"executionId":"v1-host","nodeId":"begin"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 3, 'event', 'NodeScheduled', '{"executionId":"v1-host","nodeId":"begin"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 4, 'command', 'CompleteNode', '{"executionId":"v1-host","nodeId":"begin","output":{}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 5, 'event', 'StateUpdated', '{"executionId":"v1-host","nodeId":"begin","state":{}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 6, 'event', 'ActivityCompleted', '{"executionId":"v1-host","nodeId":"begin","nodeType":"step","result":{"r":1}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 7, 'command', 'CompleteNode', '{"executionId":"v1-host","nodeId":"begin","output":{"r":1}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 8, 'event', 'StateUpdated', '{"executionId":"v1-host","nodeId":"begin","state":{"a":1,"r":1}}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 9, 'command', 'ScheduleNode', '{"executionId":"v1-host","nodeId":"t"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 10, 'event', 'NodeScheduled', '{"executionId":"v1-host","nodeId":"t"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-host', 11, 'event', 'ActivityRequested', '{"executionId":"v1-host","nodeId":"t","nodeType":"step","attempt":1,"activityExecutionMode":"host_mediated"}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO history VALUES ('v1-other', 1, 'event', 'ExecutionStarted', '{"executionId":"v1-other","inputKeys":[]}', '2026-11-21T01:00:00.000Z', 1, 1);
INSERT INTO definitions VALUES (1, 'h', 'w', '1', '{"a":1}', '', 1795945895200);
INSERT INTO timers VALUES ('v1-host', 't#1', 1795222800000);
INSERT INTO leases VALUES ('v1-host', 'old', 2110842000000);
INSERT INTO executions VALUES (1, 'v1-done', 9, 'completed', 'w', 1795222800000, 1795222800000, 1795222800000, 0, '{"seq":9,"name":"w","version":"1","hash":"h","mode":"in_process","created":"2026-11-21T01:00:00.000Z","updated":"2026-11-21T01:00:00.000Z","outcome":"completed","node":"end","visits":2,"stateSeq":5,"started":true,"bound":true}', NULL, 0, NULL, 501, NULL, NULL);
INSERT INTO executions VALUES (2, 'v1-delegate', 2, 'awaiting_activity', '', 1795222800000, 1795222800000, 1795222800000, 0, '{"seq":2,"labels":{"kept":"yes"},"created":"2026-11-21T01:00:00.000Z","updated":"2026-11-21T01:00:00.000Z","node":"d","correlation":"c","started":true,"waits":[{"kind":"activity","node":"d","nodeType":"agent_delegate","agent":"coder","protocol":"a2a","correlation":"c","input":{"task":"T"}}]}', NULL, 0, NULL, 230, NULL, NULL);
INSERT INTO executions VALUES (3, 'v1-host', 11, 'awaiting_activity', 'w', 1795222800000, 1795222800000, 1795222800000, 0, '{"seq":11,"name":"w","version":"1","hash":"h","mode":"host_mediated","created":"2026-11-21T01:00:00.000Z","updated":"2026-11-21T01:00:00.000Z","node":"t","visits":2,"stateSeq":8,"started":true,"bound":true,"waits":[{"kind":"activity","node":"t","nodeType":"step","attempt":1,"mode":"host_mediated"}]}', NULL, 11, X'706F736974696F6E', 717, NULL, NULL);
INSERT INTO executions VALUES (4, 'v1-other', 1, 'running', '', 1795222800000, 1795222800000, 1795222800000, 0, '{"seq":1,"created":"2026-11-21T01:00:00.000Z","updated":"2026-11-21T01:00:00.000Z","started":true}', NULL, 0, NULL, 41, NULL, NULL);
INSERT INTO processes VALUES ('kept', 1795949495203, '{"work":"all"}');
INSERT INTO clocks VALUES ('1de41212-5671-4d95-b947-93ccc874d1aatime:[4026531834]', 1795944507866, 1795944507866, 1795945895202);
INSERT INTO run_labels VALUES (2, 'kept', 'yes');
INSERT INTO ready VALUES (4, 'default/step:a', 1, 0, 't', 1795945895201);
CREATE TRIGGER leases_respect_owners BEFORE INSERT ON leases BEGIN
    SELECT RAISE(IGNORE) FROM executions JOIN processes ON process = owner
    WHERE execution_id = NEW.execution_id AND processes.expires > CAST(unixepoch('subsec') * 1000 AS INTEGER);
    UPDATE executions SET owner = NULL
    WHERE execution_id = NEW.execution_id AND owner IS NOT NULL AND NEW.expires > CAST(unixepoch('subsec') * 1000 AS INTEGER);
END;
CREATE TRIGGER executions_labelled AFTER INSERT ON executions WHEN instr(NEW.projection, '"labels":') BEGIN
    INSERT OR REPLACE INTO run_labels (run, name, value) SELECT NEW.run, key, value FROM json_each(NEW.projection, '$.labels');
END;
CREATE TRIGGER executions_relabelled AFTER UPDATE OF created_at ON executions BEGIN
    DELETE FROM run_labels WHERE run = NEW.run;
    INSERT INTO run_labels (run, name, value) SELECT NEW.run, key, value FROM json_each(NEW.projection, '$.labels');
END;
CREATE TRIGGER executions_unlabelled AFTER DELETE ON executions BEGIN
    DELETE FROM run_labels WHERE run = OLD.run;
END;
CREATE TRIGGER executions_owned AFTER UPDATE OF owner ON executions WHEN NEW.owner IS NOT NULL BEGIN
    DELETE FROM ready WHERE run = NEW.run;
END;
CREATE TRIGGER executions_ended AFTER UPDATE OF phase ON executions WHEN NEW.phase IN ('completed', 'failed', 'cancelled', 'deleted') BEGIN
    DELETE FROM ready WHERE run = NEW.run;
END;
CREATE TRIGGER executions_deleted AFTER DELETE ON executions BEGIN
    DELETE FROM ready WHERE run = OLD.run;
END;
CREATE TRIGGER ready_inserted AFTER INSERT ON ready BEGIN
    UPDATE executions SET driven = 2 WHERE run = NEW.run AND driven = 1;
END;
CREATE TRIGGER ready_deleted AFTER DELETE ON ready BEGIN
    UPDATE executions SET driven = 1 WHERE run = OLD.run AND driven = 2;
END;
PRAGMA application_id = 1096241256;
PRAGMA user_version = 15;
