UPDATE executions SET phase = 'deleted', problem = 'deleted', driven = 0, owner = NULL, position_seq = 0, position = NULL WHERE execution_id = ?1
