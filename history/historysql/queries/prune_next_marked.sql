SELECT execution_id FROM executions WHERE phase = 'deleted' LIMIT 1
