INSERT INTO leases (execution_id, owner, expires) VALUES (?1, ?2, ?3)
ON CONFLICT (execution_id) DO UPDATE SET owner = excluded.owner, expires = excluded.expires
WHERE owner = excluded.owner OR expires <= ?4
