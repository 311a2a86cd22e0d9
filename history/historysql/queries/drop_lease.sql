DELETE FROM leases WHERE execution_id = ?1
