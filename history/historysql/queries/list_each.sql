SELECT run, updated_at, execution_id FROM executions INDEXED BY %[1]s
WHERE %[2]s AND listed_at <= ?7 AND listed_at >= ?8
AND updated_at >= ?4 AND (updated_at < ?2 OR updated_at = ?2 AND execution_id > ?3)
AND instr(projection, ?9) AND NOT EXISTS (
    SELECT 1 FROM json_each(?6) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_each(projection, '$.labels') AS label
        WHERE label.key = wanted.key AND (wanted.value = '' OR label.value = wanted.value)))
