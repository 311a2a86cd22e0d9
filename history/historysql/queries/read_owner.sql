SELECT COALESCE(l.owner, e.owner, ''), COALESCE(l.expires, p.expires, e.disowned)
FROM executions AS e LEFT JOIN processes AS p ON p.process = e.owner
LEFT JOIN leases AS l ON l.execution_id = e.execution_id AND (l.expires > ?2 OR e.owner IS NULL AND e.disowned IS NULL)
WHERE e.execution_id = ?1 AND e.phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
