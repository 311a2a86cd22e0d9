INSERT INTO positions (execution_id, position) VALUES (?1, ?2)
ON CONFLICT (execution_id) DO UPDATE SET position = excluded.position
