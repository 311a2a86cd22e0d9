INSERT INTO deliveries (delivery_id, event_id, execution_id, target, state, due) VALUES (?1, ?2, ?3, ?4, 'pending', ?5)
