-- Version 11 of the file. Which runs have begun with the past of which others.
CREATE TABLE run_links (
    to_id   TEXT    NOT NULL PRIMARY KEY,
    from_id TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    actor   TEXT,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_links_by_origin ON run_links (from_id, at, to_id);
