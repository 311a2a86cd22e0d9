SELECT 1 FROM executions WHERE execution_id = ?1 AND +owner = ?2
