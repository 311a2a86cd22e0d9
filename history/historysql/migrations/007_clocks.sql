-- Version 7 of the file. The processes agree on how far the machine's clock has stepped since it started. leases and floor are the
-- time of the start by the clock of leases and by the store's, seen is the newest time of the store.
CREATE TABLE clocks (
    boot   TEXT    NOT NULL PRIMARY KEY,
    leases INTEGER NOT NULL,
    floor  INTEGER NOT NULL,
    seen   INTEGER NOT NULL
) WITHOUT ROWID;
