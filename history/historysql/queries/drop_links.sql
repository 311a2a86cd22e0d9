DELETE FROM run_links WHERE to_id = ?1 OR from_id = ?1
