package historysql

import "os"

// tidy lets SQLite remove the empty WAL and the shared-memory file that reading a database creates. Only a connection
// that may write removes them, as the last one to be closed, which SQLite decides under its own locks. A WAL with
// content is left alone, because removing it would write to the database. A failure has no consequence and is not
// reported.
func (s *Store) tidy() {
	if wal, err := os.Stat(siblingFile(s.path, walSuffix)); err != nil || wal.Size() > 0 {
		return
	}
	c, err := s.connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		return
	}
	_ = c.script("PRAGMA schema_version") // the first read opens the WAL
	_ = c.Close()
}
