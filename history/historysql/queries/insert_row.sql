INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version, writer)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, 0)
