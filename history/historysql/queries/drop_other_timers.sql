DELETE FROM timers WHERE execution_id = ?1 AND timer_key NOT IN (SELECT value FROM json_each(?2))
