package historysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// watchEvery is the interval between two reads of SQLite's data version, some bytes of shared memory.
const watchEvery = 50 * time.Millisecond

// checkEvery is the number of these reads of which one is made even if the WAL looks the same, after a check that the file is the same.
const checkEvery = 20

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
	defer func() { err = failure(doing, errors.Join(err, w.conn.Close())) }()
	pause := time.NewTicker(watchEvery)
	defer pause.Stop()
	for n := 0; ; n++ {
		if n%checkEvery == 0 {
			if err := s.checkReplaced(); err != nil {
				return err
			}
		}
		if err := w.tick(n%checkEvery == 0); err != nil && !isBusy(err) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		case <-s.closing.Done():
			return errClosed
		}
	}
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
}

// stamp is the size and the time of a file.
type stamp struct {
	size int64
	at   time.Time
}

func (s *Store) newWatch(look func(c *conn) error) (*watch, error) {
	c, err := s.connect(dataSource(s.path, "ro", &s.options))
	return &watch{conn: c, look: look, wal: s.path + walSuffix}, err
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

// tick looks at the file if others have written to it.
func (w *watch) tick(sure bool) error {
	if w.still() && !sure {
		return nil
	}
	version, err := w.conn.one("PRAGMA data_version")
	if err != nil {
		w.last = stamp{}
	}
	if err != nil || version == w.version {
		return err
	}
	if err := w.look(w.conn); err != nil {
		w.last = stamp{} // to be repeated
		return err
	}
	w.version = version
	return nil
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
