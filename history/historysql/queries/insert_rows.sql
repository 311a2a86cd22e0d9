INSERT OR FAIL INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version, writer) VALUES
