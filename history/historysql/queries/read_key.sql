SELECT value FROM keys WHERE name = ?1
