SELECT count(*) FROM executions WHERE phase = 'deleted'
