DELETE FROM executions WHERE execution_id = ?1
