DELETE FROM delivery_events WHERE execution_id = ?1
