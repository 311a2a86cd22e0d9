package historysql

import (
	"os"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A database may be deleted, moved or restored while a process uses it. In WAL mode SQLite does not notice: it keeps
// writing to the unlinked files. Its last connection, when closed, copies its WAL over the new file at the path and
// deletes the new file's WAL. So this package compares the files, and does not touch files that it did not open.

// lookEvery is the shortest interval between two comparisons. Their two system calls are cheap for a call of a host, but expensive for a run
// at full speed. Close always compares.
const lookEvery = 10 * time.Millisecond

// opened is the identity of a store's open files.
type opened struct {
	file, wal os.FileInfo // wal is nil if the file system does not support a WAL
	walPath   string
}

// remember notes the identity of the files. Call it right after the writing connection has opened them.
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

// replaced reports whether the paths now lead to files other than the open ones.
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
