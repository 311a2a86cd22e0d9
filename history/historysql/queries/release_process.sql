UPDATE processes SET expires = ?2 WHERE process = ?1 AND expires > ?2
