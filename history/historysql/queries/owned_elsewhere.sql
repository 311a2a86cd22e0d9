SELECT 1 FROM executions JOIN processes ON process = owner WHERE execution_id = ?1 AND owner <> ?2 AND expires > ?3
UNION ALL SELECT 1 FROM leases WHERE execution_id = ?1 AND expires > ?3
