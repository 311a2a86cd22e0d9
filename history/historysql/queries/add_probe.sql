INSERT INTO processes (process, expires) VALUES (?1, 0)
