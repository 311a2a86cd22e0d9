UPDATE deliveries SET state = 'pending', due = ?2, step = 0 WHERE delivery_id = ?1
