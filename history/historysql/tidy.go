package historysql

import "os"

// tidy lets SQLite take away the empty log and the lock file that reading a file makes beside it. A reading connection
// cannot do it: only a connection that may write removes them, as the last one to close, and SQLite decides under its own
// locks whether it is the last. A log with steps in it is left alone, since to remove it would be to write them to the
// file. Nothing depends on it, so that nothing is said where it fails.
func (s *Store) tidy() {
	if log, err := os.Stat(besideFile(s.path, walSuffix)); err != nil || log.Size() > 0 {
		return
	}
	c, err := s.connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		return
	}
	_ = c.script("PRAGMA schema_version") // the log is opened by the first read
	_ = c.Close()
}
