SELECT execution_id, (SELECT seq FROM history AS h WHERE h.execution_id = e.execution_id ORDER BY seq DESC LIMIT 1)
FROM executions AS e WHERE owner = ?1
