SELECT run, updated_at, execution_id FROM executions INDEXED BY %[1]s
WHERE %[2]s AND listed_at <= ?7 AND listed_at >= max(?8, COALESCE((
    SELECT listed_at FROM executions INDEXED BY %[1]s WHERE %[2]s AND listed_at < ?7 ORDER BY listed_at DESC LIMIT 1 OFFSET ?1 - 1), ?8))
AND updated_at >= ?4 AND (updated_at < ?2 OR updated_at = ?2 AND execution_id > ?3)
