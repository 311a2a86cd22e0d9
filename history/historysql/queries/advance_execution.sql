UPDATE executions SET seq = ?3, phase = ?4, updated_at = ?5, projection = ?6
WHERE execution_id = ?1 AND seq = ?2 AND driven = ?7
