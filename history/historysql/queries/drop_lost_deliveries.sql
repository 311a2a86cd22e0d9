DELETE FROM deliveries WHERE execution_id = ?1 AND event_id NOT IN (SELECT event_id FROM delivery_events WHERE execution_id = ?1)
