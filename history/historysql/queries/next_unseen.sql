SELECT execution_id FROM history INDEXED BY history_foreign WHERE writer IS NULL AND execution_id > ?1 ORDER BY execution_id LIMIT 1
