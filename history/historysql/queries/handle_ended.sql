INSERT INTO handled (execution_id, retry_id, at) SELECT execution_id, ?2, ?3 FROM executions WHERE execution_id = ?1 AND phase IN ('failed', 'cancelled')
ON CONFLICT (execution_id) DO NOTHING
