INSERT INTO blob_refs (execution_id, blob) SELECT ?1, number FROM blobs WHERE hash = ?2 ON CONFLICT DO NOTHING
