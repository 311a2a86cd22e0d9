DELETE FROM processes WHERE process = ?1
