package historysql

import (
	"os"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A database may be deleted, moved or restored while a process uses it. In WAL mode SQLite does not notice: it keeps
// writing to the unlinked files, and the last connection to be closed copies its WAL over the file that is now at the path
// and deletes that file's WAL. So this package compares the files, and does not touch files that it did not open.

// lookEvery is the shortest pause between two comparisons: two system calls are little for a call of a host, and much
// for a run at full speed. Close always compares.
const lookEvery = 10 * time.Millisecond

// opened is the identity of the files that a store has open.
type opened struct {
	file, wal os.FileInfo // the wal is nil where the file system has none
	walPath   string
}

// remember notes the identity of the files. The writing connection has just opened them.
func (s *Store) remember() {
	file, err := os.Stat(s.path)
	if err != nil {
		return
	}
	walPath := siblingFile(s.path, walSuffix)
	wal, err := os.Stat(walPath)
	if err != nil {
		wal = nil
	}
	s.opened.Store(&opened{file, wal, walPath})
	s.looked.Store(time.Now().UnixNano())
}

// replaced reports whether the paths now lead to other files than those that the store has open.
func (s *Store) replaced() bool {
	was := s.opened.Load()
	if was == nil {
		return s.gone.Load()
	}
	other := func(path string, was os.FileInfo) bool {
		now, err := os.Stat(path)
		return os.IsNotExist(err) || err == nil && !os.SameFile(now, was)
	}
	if other(s.path, was.file) || was.wal != nil && other(was.walPath, was.wal) {
		s.gone.Store(true)
	}
	return s.gone.Load()
}

// checkReplaced returns an error if the files have been replaced.
func (s *Store) checkReplaced() error {
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
		WithHint("Nothing was written. Restart this process: it then uses the file that is there.")
}
