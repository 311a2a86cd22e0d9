DELETE FROM delivery_attempts WHERE delivery IN (SELECT number FROM deliveries WHERE execution_id = ?1)
