-- Version 6 of the file. The signature block with which a definition came last, as JSON; '' for one that never had any.
ALTER TABLE definitions ADD COLUMN signature TEXT NOT NULL DEFAULT '';
