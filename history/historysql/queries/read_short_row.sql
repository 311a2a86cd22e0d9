SELECT name, payload_json FROM history WHERE execution_id = ?1 AND seq = ?2 AND record_schema_version = ?3
