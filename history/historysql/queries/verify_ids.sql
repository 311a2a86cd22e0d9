SELECT execution_id FROM (
    SELECT DISTINCT execution_id FROM history UNION SELECT execution_id FROM executions
    UNION SELECT execution_id FROM timers UNION SELECT execution_id FROM blob_refs
    UNION SELECT execution_id FROM deliveries UNION SELECT execution_id FROM delivery_events
    UNION SELECT to_id FROM run_links UNION SELECT from_id FROM run_links UNION SELECT execution_id FROM handled
) ORDER BY execution_id
