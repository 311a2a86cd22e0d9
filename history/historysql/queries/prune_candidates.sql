SELECT execution_id, listed_at, run FROM executions
WHERE phase = ?1 AND listed_at <= ?2 AND (listed_at > ?3 OR listed_at = ?3 AND run > ?4)
AND (?5 = '' OR definition_name = ?5)
ORDER BY listed_at, run LIMIT ?6
