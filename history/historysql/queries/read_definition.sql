SELECT hash, name, version, text, signature FROM definitions WHERE hash = ?1
