INSERT INTO handled (execution_id, retry_id, at) VALUES (?1, ?2, ?3) ON CONFLICT (execution_id) DO NOTHING
