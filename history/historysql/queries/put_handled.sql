INSERT INTO handled (execution_id, note, retry_id, actor, at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (execution_id) DO UPDATE SET note = excluded.note, retry_id = excluded.retry_id, actor = excluded.actor, at = excluded.at
