SELECT execution_id, seq, projection, problem, (SELECT max(seq) FROM history AS h WHERE h.execution_id = e.execution_id)
FROM executions AS e WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3
ORDER BY execution_id
