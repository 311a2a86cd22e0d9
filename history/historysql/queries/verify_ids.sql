SELECT execution_id FROM (
    SELECT DISTINCT execution_id FROM history UNION SELECT execution_id FROM executions
    UNION SELECT execution_id FROM timers UNION SELECT execution_id FROM blob_refs
) ORDER BY execution_id
