SELECT note, retry_id, actor, at FROM handled WHERE execution_id = ?1
