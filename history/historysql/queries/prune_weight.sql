SELECT count(*), COALESCE(sum(octet_length(payload_json)), 0),
    (SELECT count(*) FROM blob_refs WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3)
FROM history WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3
