SELECT execution_id, (SELECT max(seq) FROM history AS h WHERE h.execution_id = e.execution_id) FROM executions AS e WHERE owner = ?1
