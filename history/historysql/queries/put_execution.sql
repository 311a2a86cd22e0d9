INSERT INTO executions (execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection, problem, position_seq, position, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, COALESCE(?11, 0), ?12, ?13)
ON CONFLICT (execution_id) DO UPDATE SET
    seq = excluded.seq, phase = excluded.phase, definition_name = excluded.definition_name, created_at = excluded.created_at,
    updated_at = excluded.updated_at, listed_at = excluded.listed_at, driven = excluded.driven, projection = excluded.projection,
    problem = excluded.problem, bytes = excluded.bytes, position_seq = COALESCE(?11, position_seq), position = CASE WHEN ?11 IS NULL THEN position ELSE ?12 END
WHERE executions.problem IS NOT 'deleted'
