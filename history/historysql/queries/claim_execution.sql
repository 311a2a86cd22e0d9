UPDATE executions SET owner = ?2, disowned = NULL
WHERE execution_id = ?1 AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
    AND (owner IS NULL OR owner = ?2 OR NOT EXISTS (SELECT 1 FROM processes WHERE process = owner AND expires > ?3))
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.execution_id = ?1 AND expires > ?3)
