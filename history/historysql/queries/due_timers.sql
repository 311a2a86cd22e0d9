SELECT execution_id, timer_key, due FROM timers WHERE due <= ?1 ORDER BY due, execution_id, timer_key LIMIT ?2
