SELECT min(due) FROM timers
