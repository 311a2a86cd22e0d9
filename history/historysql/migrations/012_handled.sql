-- Version 12 of the file. Which failed and cancelled runs need nobody any more.
CREATE TABLE handled (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    note         TEXT,
    retry_id     TEXT,
    actor        TEXT,
    at           INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO handled (execution_id, retry_id, at)
WITH RECURSIVE work (id, retry, at) AS (
    SELECT l.to_id, l.to_id, e.updated_at FROM run_links AS l JOIN executions AS e ON e.execution_id = l.to_id
    WHERE l.kind = 'retry' AND e.phase = 'completed'
    UNION
    SELECT l.from_id, w.retry, w.at FROM work AS w JOIN run_links AS l ON l.to_id = w.id WHERE l.kind = 'retry'
    UNION
    SELECT l.to_id, w.retry, w.at FROM work AS w JOIN run_links AS l ON l.from_id = w.id WHERE l.kind = 'retry')
SELECT id, retry, at FROM work WHERE id IN (SELECT execution_id FROM executions WHERE phase IN ('failed', 'cancelled'))
ON CONFLICT (execution_id) DO NOTHING;
