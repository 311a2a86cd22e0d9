package historysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// watchEvery is the interval between two looks at a file that others may be writing to.
const watchEvery = 50 * time.Millisecond

// watchAfterWrite are the pauses before the looks that follow when the kernel has told of a write: a commit is visible once it is flushed.
var watchAfterWrite = []time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// watchAgain is the shortest time from a look that has found something to the next write that is noticed: a file may be in constant use.
const watchAgain = 20 * time.Millisecond

// checkEvery is the interval between looks that are made even if the WAL looks the same, after a check that the file is the same.
const checkEvery = time.Second

// settled is the age from which a WAL that is written again shows another time: clocks of file systems tick in milliseconds. A commit may also take a while
// from its write to the flush that ends it.
const settled = 300 * time.Millisecond

var _ history.Watcher = (*Store)(nil)

// Watch calls changed with runs that have grown; see history.Watcher. It compares SQLite's data version, which changes with every commit of
// another connection, and reads the new rows. Rows are numbered in insertion order. But after VACUUM, or a deletion of the last rows, SQLite
// reuses their numbers, and Watch may miss such rows.
func (s *Store) Watch(ctx context.Context, changed func(executionID string, seq int64)) error {
	w := growth{changed: changed, last: -1}
	return s.watch(ctx, "the changes could not be read", w.look)
}

// watch calls look once and after each commit to the file, also of other processes, until ctx ends. It calls look again after an error of a
// lock that another process holds.
func (s *Store) watch(ctx context.Context, doing string, look func(c *conn) error) (err error) {
	s.watching.RLock() // Close waits for Watch to end
	defer s.watching.RUnlock()
	if s.closing.Err() != nil {
		return errClosed
	}
	w, err := s.newWatch(look)
	if err != nil {
		return failure(doing, err)
	}
	defer func() { err = failure(doing, errors.Join(err, w.close())) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.closing, stop)()
	var checked time.Time
	var after []time.Duration // the pauses left after a write
	for ctx.Err() == nil {
		sure := time.Since(checked) >= checkEvery
		if sure {
			checked = time.Now()
			if err := s.checkReplaced(); err != nil {
				return err
			}
			w.follow()
		}
		found, err := w.tick(sure || after != nil)
		if err != nil && !isBusy(err) {
			return err
		}
		switch {
		case found && w.followed:
			after = nil
			_ = wait.For(ctx, watchAgain)
		case len(after) > 0:
			_ = wait.For(ctx, after[0])
			after = after[1:]
		case w.rest(ctx):
			_ = wait.For(ctx, watchAfterWrite[0])
			after = watchAfterWrite[1:]
		default:
			after = nil
		}
	}
	if s.closing.Err() != nil {
		return errClosed
	}
	return nil
}

// watch is a connection that notices commits of others.
type watch struct {
	conn *conn
	look func(c *conn) error
	// version is the data version of the last look; nil before the first.
	version driver.Value
	// wal is the path of the WAL, last its size and time when the version was last read, zero if it was written just before.
	wal  string
	last stamp
	// quiet is whether the WAL had not been written to at the last look.
	quiet bool
	// writes tells of writes to the WAL if it is followed; nil where the system cannot.
	writes   *writes
	followed bool
}

// follow makes writes tell of the file that is the WAL now.
func (w *watch) follow() { w.followed = w.writes != nil && w.writes.follow(w.wal) }

// rest waits for the time of the next look, and reports whether the kernel has told of a write.
func (w *watch) rest(ctx context.Context) (written bool) {
	pause, writes := watchEvery, (<-chan struct{})(nil)
	if w.followed {
		writes = w.writes.C
		if w.quiet {
			pause = checkEvery
		}
	}
	select {
	case <-writes:
		return true
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return false
}

func (w *watch) close() error {
	if w.writes != nil {
		w.writes.close()
	}
	return w.conn.Close()
}

// stamp is the size and the time of a file.
type stamp struct {
	size int64
	at   time.Time
}

func (s *Store) newWatch(look func(c *conn) error) (*watch, error) {
	c, err := s.connect(dataSource(s.path, "ro", &s.options))
	if err != nil {
		return nil, err
	}
	w := &watch{conn: c, look: look, wal: s.path + walSuffix}
	if s.options.FollowWrites {
		w.writes = newWrites()
	}
	return w, nil
}

// still reports whether the WAL is as it was when the version was last read. That is one call of the system, and the version takes many.
// Windows does not tell the time of a file that is open elsewhere.
func (w *watch) still() bool {
	if runtime.GOOS == "windows" {
		return false
	}
	var now stamp
	if info, err := os.Stat(w.wal); err == nil && info.ModTime().Before(time.Now().Add(-settled)) {
		now = stamp{info.Size(), info.ModTime()}
	}
	same := now == w.last && now != stamp{}
	w.last = now
	return same
}

// tick looks at the file if others have written to it, and reports whether they have.
func (w *watch) tick(sure bool) (found bool, err error) {
	if w.quiet = w.still(); w.quiet && !sure {
		return false, nil
	}
	version, err := w.conn.one("PRAGMA data_version")
	if err != nil {
		w.last = stamp{}
	}
	if err != nil || version == w.version {
		return false, err
	}
	if err := w.look(w.conn); err != nil {
		w.last = stamp{} // to be repeated
		return false, err
	}
	w.version = version
	return true, nil
}

// growth is a call of Watch.
type growth struct {
	changed func(executionID string, seq int64)
	// last is the last row of history at the last look; -1 before the first.
	last int64
}

const (
	newestRow   = `SELECT COALESCE(max(rowid), 0) FROM history`
	changedRuns = `SELECT execution_id, max(seq) FROM history WHERE rowid > ?1 AND rowid <= ?2 GROUP BY execution_id`
)

func (g *growth) look(c *conn) error {
	v, err := c.one(newestRow)
	if err != nil {
		return err
	}
	newest, _ := v.(int64)
	if g.last >= 0 && newest > g.last {
		err := c.query(changedRuns, func(row []driver.Value) error {
			seq, _ := row[1].(int64)
			g.changed(textOf(row[0]), seq)
			return nil
		}, g.last, newest)
		if err != nil {
			return err
		}
	}
	g.last = newest
	return nil
}
