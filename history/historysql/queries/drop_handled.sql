DELETE FROM handled WHERE execution_id = ?1
