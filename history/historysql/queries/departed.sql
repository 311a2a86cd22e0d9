WITH RECURSIVE owners (name) AS (
    SELECT min(owner) FROM executions WHERE owner IS NOT NULL
    UNION ALL SELECT (SELECT min(owner) FROM executions WHERE owner > name) FROM owners WHERE name IS NOT NULL
)
SELECT name FROM owners
WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM processes WHERE process = name AND expires > ?1)
    AND EXISTS (SELECT 1 FROM executions WHERE owner = name AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted'))
