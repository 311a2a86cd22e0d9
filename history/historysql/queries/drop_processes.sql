DELETE FROM processes WHERE expires <= ?1 AND NOT EXISTS (SELECT 1 FROM executions WHERE owner = process) OR expires > ?2
