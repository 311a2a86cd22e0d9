SELECT owner, expires FROM leases WHERE execution_id = ?1
