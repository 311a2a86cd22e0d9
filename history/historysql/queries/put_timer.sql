INSERT INTO timers (execution_id, timer_key, due) VALUES (?1, ?2, ?3)
ON CONFLICT (execution_id, timer_key) DO UPDATE SET due = excluded.due WHERE due <> excluded.due
