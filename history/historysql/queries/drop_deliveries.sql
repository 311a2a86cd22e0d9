DELETE FROM deliveries WHERE execution_id = ?1
