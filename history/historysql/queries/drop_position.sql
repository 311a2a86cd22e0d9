DELETE FROM positions WHERE execution_id = ?1
