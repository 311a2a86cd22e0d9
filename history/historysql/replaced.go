package historysql

import (
	"os"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Somebody may delete, move or restore a database while a process uses it. SQLite does not look in WAL mode: it goes on
// writing to files without a name, and the last connection to be closed copies its log over the file that stands there now
// and deletes the new file's log. So this package looks, and leaves a file that is not its own alone.

// lookEvery is how often at most it looks: two system calls are little for a call of a host, and much for a run that is
// driven at full speed. Closing looks always.
const lookEvery = 10 * time.Millisecond

// opened is which files a store has open.
type opened struct {
	file, log os.FileInfo // the log is nil where the file system has none
	logPath   string
}

// remember notes which files stand there now. The writing connection has just opened them.
func (s *Store) remember() {
	file, err := os.Stat(s.path)
	if err != nil {
		return
	}
	logPath := besideFile(s.path, walSuffix)
	log, err := os.Stat(logPath)
	if err != nil {
		log = nil
	}
	s.opened.Store(&opened{file, log, logPath})
	s.looked.Store(time.Now().UnixNano())
}

// replaced reports whether the files are no longer those that the store has open.
func (s *Store) replaced() bool {
	was := s.opened.Load()
	if was == nil {
		return s.gone.Load()
	}
	other := func(path string, was os.FileInfo) bool {
		now, err := os.Stat(path)
		return os.IsNotExist(err) || err == nil && !os.SameFile(now, was)
	}
	if other(s.path, was.file) || was.log != nil && other(was.logPath, was.log) {
		s.gone.Store(true)
	}
	return s.gone.Load()
}

// standing is an error if the files have been replaced.
func (s *Store) standing() error {
	now := time.Now().UnixNano()
	if !s.gone.Load() {
		if last := s.looked.Load(); now-last >= 0 && now-last < int64(lookEvery) {
			return nil
		}
		s.looked.Store(now)
	}
	if !s.replaced() {
		return nil
	}
	return problem.New(problem.StoreReplaced, "the database %s was deleted, moved or restored while this process used it", s.path).
		WithHint("Nothing was written. Stop this process and start it again: it then uses the file that is there.")
}
