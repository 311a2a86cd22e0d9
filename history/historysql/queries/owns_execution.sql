SELECT 1 FROM executions INDEXED BY executions_driven WHERE owner = ?2 AND driven IN (0, 1) AND execution_id = ?1
