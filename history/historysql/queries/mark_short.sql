UPDATE history SET record_schema_version = ?3 WHERE execution_id = ?1 AND seq = ?2
