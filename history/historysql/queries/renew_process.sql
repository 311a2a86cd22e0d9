INSERT INTO processes (process, expires) VALUES (?1, ?2) ON CONFLICT (process) DO UPDATE SET expires = excluded.expires
