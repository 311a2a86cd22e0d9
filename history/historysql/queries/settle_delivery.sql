UPDATE deliveries SET state = ?3, due = ?4, step = ?5, leased = 0
WHERE delivery_id = ?1 AND (state = 'pending' AND attempts = ?2 OR ?3 = 'delivered')
