SELECT hash, name, version, text, signature FROM definitions
WHERE name = ?1 AND (?2 = '' OR version = ?2) ORDER BY number DESC LIMIT 1
