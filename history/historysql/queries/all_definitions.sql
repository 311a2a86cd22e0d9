SELECT hash, name, version, text FROM definitions ORDER BY number
