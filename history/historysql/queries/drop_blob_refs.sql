DELETE FROM blob_refs WHERE execution_id = ?1 AND blob IN (
    SELECT blob FROM blob_refs WHERE execution_id = ?1 ORDER BY blob LIMIT ?2
)
