SELECT count(*), COALESCE(sum(visits), 0), COALESCE(sum(seq), 0), COALESCE(sum(bytes), 0), COALESCE(sum(pending), 0) FROM (
    SELECT seq, bytes, CASE WHEN json_valid(projection) THEN projection ->> '$.visits' END AS visits,
        CASE WHEN json_valid(projection) AND phase NOT IN ('completed', 'failed', 'cancelled') THEN (
            SELECT count(*) FROM json_each(projection, '$.waits') WHERE value ->> '$.kind' IN ('activity', 'backoff')
        ) END AS pending
    FROM executions
    WHERE (execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3) AND problem IS NOT 'deleted'
)
