-- Version 5 of the file. A process has one lease, and a run names the process that owns it. disowned is when its owner gave
-- the run up.
CREATE TABLE processes (
    process TEXT    NOT NULL PRIMARY KEY,
    expires INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE executions ADD COLUMN owner TEXT;
ALTER TABLE executions ADD COLUMN disowned INTEGER;

-- The runs that need a driver or have an owner, by owner: what is asked of them is answered without their rows, which are
-- large. Older versions of this engine use the index by its name.
DROP INDEX executions_driven;
CREATE INDEX executions_driven ON executions (owner, driven, execution_id) WHERE owner IS NOT NULL OR driven = 1;

-- An older version that still has the file open takes a run by a row in leases. It gets none for a run whose owner has a
-- lease, and a run that it takes has no owner any more.
CREATE TRIGGER leases_respect_owners BEFORE INSERT ON leases BEGIN
    SELECT RAISE(IGNORE) FROM executions JOIN processes ON process = owner
    WHERE execution_id = NEW.execution_id AND processes.expires > CAST(unixepoch('subsec') * 1000 AS INTEGER);
    UPDATE executions SET owner = NULL
    WHERE execution_id = NEW.execution_id AND owner IS NOT NULL AND NEW.expires > CAST(unixepoch('subsec') * 1000 AS INTEGER);
END;
