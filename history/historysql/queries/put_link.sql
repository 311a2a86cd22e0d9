INSERT INTO run_links (to_id, from_id, kind, seq, actor, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
