-- Large values, each once, and which runs hold them.
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
