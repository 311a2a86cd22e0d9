SELECT COALESCE(max(rowid), 0) FROM history
