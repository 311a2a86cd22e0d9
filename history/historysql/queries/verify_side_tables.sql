SELECT (SELECT count(*) FROM timers WHERE execution_id = ?1), (SELECT count(*) FROM blob_refs WHERE execution_id = ?1),
    (SELECT count(*) FROM history WHERE execution_id = ?1 AND writer IS NULL),
    (SELECT count(*) FROM deliveries WHERE execution_id = ?1) + (SELECT count(*) FROM delivery_events WHERE execution_id = ?1),
    (SELECT count(*) FROM run_links WHERE to_id = ?1 OR from_id = ?1),
    (SELECT count(*) FROM handled WHERE execution_id = ?1),
    (SELECT count(*) FROM deliveries AS d LEFT JOIN delivery_events AS e ON e.event_id = d.event_id WHERE d.execution_id = ?1 AND e.event_id IS NULL)
