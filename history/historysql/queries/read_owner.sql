SELECT e.owner, p.expires, e.disowned, l.owner, l.expires
FROM executions AS e LEFT JOIN processes AS p ON p.process = e.owner LEFT JOIN leases AS l ON l.execution_id = e.execution_id
WHERE e.execution_id = ?1 AND e.phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
