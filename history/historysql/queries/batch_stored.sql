SELECT 1 FROM history WHERE execution_id = ?1 AND seq = ?2 AND payload_json = ?3 AND created_at = ?4
