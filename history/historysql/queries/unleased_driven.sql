SELECT e.execution_id, e.projection, (SELECT max(seq) FROM history WHERE execution_id = e.execution_id) FROM executions AS e INDEXED BY executions_driven
LEFT JOIN leases AS l ON l.execution_id = e.execution_id
WHERE e.driven = 1 AND (l.expires IS NULL OR l.expires <= ?1) ORDER BY COALESCE(l.expires, e.updated_at), e.execution_id
