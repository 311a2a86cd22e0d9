SELECT seq, payload_json FROM history
WHERE execution_id = ?1 AND seq BETWEEN ?2 AND ?3 AND name = 'StateUpdated' AND record_schema_version = ?4 ORDER BY seq
