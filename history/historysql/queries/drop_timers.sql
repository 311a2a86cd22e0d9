DELETE FROM timers WHERE execution_id = ?1
