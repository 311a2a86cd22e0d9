SELECT hash, name, version, text FROM definitions WHERE hash = ?1
