SELECT e.execution_id, e.projection, e.bytes
FROM (%s) AS page JOIN executions AS e ON e.run = page.run
ORDER BY page.updated_at DESC, page.execution_id LIMIT ?1
