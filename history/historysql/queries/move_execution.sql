UPDATE executions SET seq = ?3, phase = ?4, listed_at = ?5, updated_at = ?6, projection = ?8, bytes = bytes + ?11,
    position_seq = COALESCE(?9, position_seq), position = CASE WHEN ?9 IS NULL THEN position ELSE ?10 END
WHERE execution_id = ?1 AND seq = ?2 AND driven = ?7 AND (?12 IS NULL OR +owner = ?12)
