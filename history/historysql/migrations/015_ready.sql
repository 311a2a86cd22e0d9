-- Version 15 of the file. The runs that wait for a process with room: open runs without an owner that a process has made ready. The triggers
-- delete the row of a run that gets an owner, ends or is deleted, also for processes of older versions. They cost nothing in most appends,
-- which set neither owner nor phase.
CREATE TABLE ready (
    run      INTEGER PRIMARY KEY,
    lane     TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    turn     INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    since    INTEGER NOT NULL
);
-- Each ends with the row number, which is run.
CREATE INDEX ready_by_turn ON ready (lane, priority DESC, turn);
CREATE INDEX ready_by_age ON ready (lane, since);
CREATE INDEX ready_by_tenant ON ready (tenant, turn);

CREATE TRIGGER executions_owned AFTER UPDATE OF owner ON executions WHEN NEW.owner IS NOT NULL BEGIN
    DELETE FROM ready WHERE run = NEW.run;
END;
CREATE TRIGGER executions_ended AFTER UPDATE OF phase ON executions WHEN NEW.phase IN ('completed', 'failed', 'cancelled', 'deleted') BEGIN
    DELETE FROM ready WHERE run = NEW.run;
END;
CREATE TRIGGER executions_deleted AFTER DELETE ON executions BEGIN
    DELETE FROM ready WHERE run = OLD.run;
END;

-- driven is 2 in a ready run that needs a driver. So the index of runs without an owner contains no ready runs, however many wait.
CREATE TRIGGER ready_inserted AFTER INSERT ON ready BEGIN
    UPDATE executions SET driven = 2 WHERE run = NEW.run AND driven = 1;
END;
CREATE TRIGGER ready_deleted AFTER DELETE ON ready BEGIN
    UPDATE executions SET driven = 1 WHERE run = OLD.run AND driven = 2;
END;

-- How a process describes itself (history.About), as JSON.
ALTER TABLE processes ADD COLUMN about TEXT;
