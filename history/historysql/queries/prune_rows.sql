DELETE FROM history WHERE execution_id = ?1 AND seq > (SELECT max(seq) FROM history WHERE execution_id = ?1) - ?2
