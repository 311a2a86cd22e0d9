SELECT d.delivery_id, d.event_id, d.execution_id, d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, '', d.number
FROM deliveries AS d INDEXED BY deliveries_due JOIN delivery_events AS e ON e.event_id = d.event_id
WHERE d.state = 'pending' AND d.target = ?1 AND d.due <= ?2 AND (d.leased <= ?3 OR d.leased > ?4)
ORDER BY d.due, d.number LIMIT ?5
