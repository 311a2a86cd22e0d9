SELECT l.to_id FROM run_links AS l INDEXED BY run_links_by_origin JOIN executions AS e ON e.execution_id = l.to_id
WHERE l.from_id = ?1 AND l.kind = 'retry' AND e.phase NOT IN ('failed', 'cancelled', 'deleted') ORDER BY l.at, l.to_id LIMIT 1
