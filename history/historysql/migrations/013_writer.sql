-- Version 13 of the file. No other engine writes to it any more: writer is 1 in rows of this engine and 0 in imported ones. The index stays, without
-- entries, because processes of older versions that have the file open use it by its name.
UPDATE history SET writer = 0 WHERE writer IS NULL;
