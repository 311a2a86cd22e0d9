DELETE FROM blobs WHERE number IN (SELECT blob FROM blob_refs WHERE execution_id = ?1 ORDER BY blob LIMIT ?2)
AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = number AND execution_id <> ?1)
