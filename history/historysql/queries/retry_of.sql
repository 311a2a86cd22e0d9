SELECT from_id FROM run_links WHERE to_id = ?1 AND kind = 'retry'
