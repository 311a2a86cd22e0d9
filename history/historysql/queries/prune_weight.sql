WITH tree AS (SELECT DISTINCT blob FROM blob_refs WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3)
SELECT count(*),
    COALESCE(sum(octet_length(payload_json)), 0) + COALESCE((
        SELECT sum(octet_length(content)) FROM tree JOIN blobs ON number = blob
        WHERE NOT EXISTS (SELECT 1 FROM blob_refs AS r WHERE r.blob = number AND NOT (r.execution_id = ?1 OR r.execution_id >= ?2 AND r.execution_id < ?3))), 0),
    (SELECT count(*) FROM blob_refs WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3)
FROM history WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3
