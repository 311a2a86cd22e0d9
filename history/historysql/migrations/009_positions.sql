-- Version 9 of the file. An append writes all of its run's row, so a large position has a row of its own.
CREATE TABLE positions (
    execution_id TEXT NOT NULL PRIMARY KEY,
    position     BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO positions (execution_id, position)
SELECT execution_id, position FROM executions WHERE octet_length(position) > 2048;
UPDATE executions SET position = NULL WHERE octet_length(position) > 2048;
