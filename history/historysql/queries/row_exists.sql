SELECT 1 FROM history WHERE execution_id = ?1 AND seq = ?2
