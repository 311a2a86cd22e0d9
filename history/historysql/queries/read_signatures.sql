SELECT signature FROM definitions WHERE hash = ?1
