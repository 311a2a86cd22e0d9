-- Version 6 of the file. The signature blocks with which a definition came, as JSON, one a line; '' for one that never had any.
ALTER TABLE definitions ADD COLUMN signature TEXT NOT NULL DEFAULT '';
