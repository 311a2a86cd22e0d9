SELECT phase FROM executions WHERE execution_id = ?1
