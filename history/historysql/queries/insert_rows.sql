INSERT OR FAIL INTO history (execution_id, seq, created_at, kind, name, payload_json, record_schema_version, writer) VALUES
