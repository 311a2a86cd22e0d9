SELECT d.delivery_id, d.event_id, d.execution_id, d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, e.body, d.number
FROM deliveries AS d JOIN delivery_events AS e ON e.event_id = d.event_id WHERE d.delivery_id = ?1
