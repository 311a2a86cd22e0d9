SELECT execution_id, max(seq) FROM history WHERE rowid > ?1 AND rowid <= ?2 GROUP BY execution_id
