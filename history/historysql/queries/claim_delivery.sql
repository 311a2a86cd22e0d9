UPDATE deliveries SET attempts = ?2, leased = ?3
WHERE delivery_id = ?1 AND state = 'pending' AND attempts = ?2 - 1 AND (leased <= ?4 OR leased > ?5)
