-- Version 14 of the file. The labels of runs, so that the runs with a label are found without reading all projections. The triggers keep
-- them as the projection has them, also for processes of older versions. They cost nothing in most appends, which do not set created_at.
CREATE TABLE run_labels (
    run   INTEGER NOT NULL,
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
INSERT INTO run_labels (run, name, value)
SELECT run, key, value FROM executions, json_each(CASE WHEN json_valid(projection) THEN projection ELSE '{}' END, '$.labels');
CREATE INDEX run_labels_by_value ON run_labels (name, value, run);

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

-- When a definition was stored first, by the store's time; 0 for those of older versions.
ALTER TABLE definitions ADD COLUMN stored_at INTEGER NOT NULL DEFAULT 0;
