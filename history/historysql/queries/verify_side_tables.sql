SELECT (SELECT count(*) FROM timers WHERE execution_id = ?1), (SELECT count(*) FROM blob_refs WHERE execution_id = ?1),
    (SELECT count(*) FROM history WHERE execution_id = ?1 AND writer IS NULL)
