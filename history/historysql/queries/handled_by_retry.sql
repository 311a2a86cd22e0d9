SELECT retry_id FROM handled WHERE execution_id = ?1
