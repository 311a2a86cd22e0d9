SELECT delivery, attempt, process, began_at, ended_at, outcome, status, error FROM delivery_attempts WHERE delivery IN (SELECT value FROM json_each(?1))
ORDER BY delivery, attempt
