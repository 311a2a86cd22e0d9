WITH RECURSIVE owners (name) AS (
    SELECT min(owner) FROM executions WHERE owner IS NOT NULL
    UNION ALL SELECT (SELECT min(owner) FROM executions WHERE owner > name) FROM owners WHERE name IS NOT NULL
),
gone (name) AS (
    SELECT name FROM owners WHERE name IS NULL OR NOT EXISTS (SELECT 1 FROM processes WHERE process = name AND expires > ?1)
)
SELECT e.execution_id FROM gone
CROSS JOIN executions AS e INDEXED BY executions_driven ON e.owner IS gone.name
LEFT JOIN processes AS p ON p.process = e.owner
LEFT JOIN leases AS l ON l.execution_id = e.execution_id
WHERE e.driven = 1 AND (l.expires IS NULL OR l.expires <= ?1)
ORDER BY COALESCE(p.expires, e.disowned, l.expires, e.updated_at), e.execution_id
