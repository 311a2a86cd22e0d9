SELECT position_seq, position FROM executions WHERE execution_id = ?1
