SELECT e.position_seq, COALESCE(e.position, p.position) FROM executions AS e
LEFT JOIN positions AS p ON e.position IS NULL AND e.position_seq > 0 AND p.execution_id = e.execution_id
WHERE e.execution_id = ?1
