UPDATE history SET writer = 0 WHERE execution_id = ?1 AND writer IS NULL
