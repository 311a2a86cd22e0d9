SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l INDEXED BY run_links_by_origin
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.from_id = ?1
UNION ALL
SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.to_id = ?1 ORDER BY 6, 2
