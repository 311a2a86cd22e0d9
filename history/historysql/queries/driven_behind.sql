SELECT execution_id FROM executions AS e
WHERE driven = 1 AND seq < (SELECT max(seq) FROM history WHERE execution_id = e.execution_id)
