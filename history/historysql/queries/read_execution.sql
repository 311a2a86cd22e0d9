SELECT e.seq, e.projection, e.problem, (SELECT max(seq) FROM history WHERE execution_id = ?1), e.bytes
FROM (SELECT 1) LEFT JOIN executions AS e ON e.execution_id = ?1
