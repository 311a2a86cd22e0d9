SELECT 1 FROM leases WHERE execution_id = ?1 AND owner <> ?2 AND expires > ?3
