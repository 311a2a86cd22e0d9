SELECT * FROM (
    SELECT run, updated_at, execution_id FROM executions INDEXED BY %s
    WHERE %s AND updated_at = ?2 AND updated_at >= ?4 AND execution_id > ?3
    ORDER BY execution_id LIMIT ?1
) UNION ALL SELECT * FROM (
    SELECT run, updated_at, execution_id FROM executions INDEXED BY %s
    WHERE %s AND updated_at < ?2 AND updated_at >= ?4
    ORDER BY updated_at DESC, execution_id LIMIT ?1
)
