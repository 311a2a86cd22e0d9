UPDATE delivery_attempts SET ended_at = ?3, outcome = ?4, status = ?5, error = ?6
WHERE delivery = (SELECT number FROM deliveries WHERE delivery_id = ?1) AND attempt = ?2
