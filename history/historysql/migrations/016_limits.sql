-- Version 16 of the file. Limits that all processes share, and what each process holds of them. Times are in nanoseconds, because the time between
-- two starts of a high rate is less than a millisecond.
CREATE TABLE limits (
    class      TEXT    NOT NULL PRIMARY KEY,
    concurrent INTEGER NOT NULL,
    per_second REAL    NOT NULL,
    next       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE shares (
    class   TEXT    NOT NULL,
    process TEXT    NOT NULL,
    slots   INTEGER NOT NULL,
    wanted  INTEGER NOT NULL,
    starts  INTEGER NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (class, process)
) WITHOUT ROWID;
