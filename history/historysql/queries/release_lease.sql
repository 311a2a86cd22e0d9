DELETE FROM leases WHERE execution_id = ?1 AND owner = ?2
