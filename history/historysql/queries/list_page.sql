SELECT e.execution_id, e.projection, e.bytes,
    CASE WHEN e.driven = 1 THEN (SELECT max(seq) FROM history WHERE execution_id = e.execution_id) ELSE e.seq END
FROM (%s) AS page JOIN executions AS e ON e.run = page.run
ORDER BY page.updated_at DESC, page.execution_id LIMIT ?1
