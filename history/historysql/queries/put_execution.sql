INSERT INTO executions (execution_id, seq, phase, definition_name, created_at, updated_at, driven, projection, problem, position_seq, position)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (execution_id) DO UPDATE SET
    seq = excluded.seq, phase = excluded.phase, definition_name = excluded.definition_name, created_at = excluded.created_at,
    updated_at = excluded.updated_at, driven = excluded.driven, projection = excluded.projection, problem = excluded.problem,
    position_seq = CASE WHEN ?12 THEN excluded.position_seq ELSE position_seq END,
    position = CASE WHEN ?12 THEN excluded.position ELSE position END
