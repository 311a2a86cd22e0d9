INSERT INTO delivery_events (event_id, execution_id, seq, event, created_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (event_id) DO NOTHING
