UPDATE executions SET owner = NULL, disowned = ?3 WHERE execution_id = ?1 AND owner IS COALESCE(?2, owner)
