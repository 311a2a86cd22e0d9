SELECT seq, kind, name, payload_json, created_at, record_schema_version, writer FROM history
WHERE execution_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3
