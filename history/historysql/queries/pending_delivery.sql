SELECT 1 FROM deliveries WHERE execution_id = ?1 AND state = 'pending' LIMIT 1
