SELECT seq, phase, definition_name, created_at, updated_at, driven, projection, problem FROM executions WHERE execution_id = ?1
