INSERT INTO delivery_attempts (delivery, attempt, process, began_at) SELECT number, ?2, ?3, ?4 FROM deliveries WHERE delivery_id = ?1
