SELECT count(*) FROM delivery_attempts WHERE delivery NOT IN (SELECT number FROM deliveries)
