UPDATE executions SET driven = ?3 WHERE execution_id = ?1 AND seq = ?2
