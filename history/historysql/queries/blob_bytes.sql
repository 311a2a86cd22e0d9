SELECT COALESCE(sum(octet_length(content)), 0) FROM blobs WHERE number IN (SELECT blob FROM blob_refs WHERE execution_id = ?1)
