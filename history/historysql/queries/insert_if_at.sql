INSERT OR FAIL INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version, writer)
SELECT ?1, ?2 + column1, column2, column3, column4, ?3, 1, 1 FROM (VALUES %s)
WHERE EXISTS (SELECT 1 FROM executions WHERE execution_id = ?1 AND seq = ?%d)
    AND EXISTS (SELECT 1 FROM history WHERE execution_id = ?1 AND seq = ?2 - 1)
