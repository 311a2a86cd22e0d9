package historysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// watchEvery is the interval between two reads of SQLite's data version, some bytes of shared memory.
const watchEvery = 50 * time.Millisecond

var _ history.Watcher = (*Store)(nil)

// Watch calls changed with runs that have grown; see history.Watcher. It compares SQLite's data version, which changes with every commit of
// another connection, and reads the new rows. Rows are numbered in insertion order. But after VACUUM, or a deletion of the last rows, SQLite
// reuses their numbers, and Watch may miss such rows.
func (s *Store) Watch(ctx context.Context, changed func(executionID string, seq int64)) (err error) {
	const doing = "the changes could not be read"
	s.watching.RLock() // Close waits for Watch to end
	defer s.watching.RUnlock()
	if s.closing.Err() != nil {
		return errClosed
	}
	c, err := s.connect(dataSource(s.path, "ro", &s.options))
	if err != nil {
		return failure(doing, err)
	}
	defer func() { err = failure(doing, errors.Join(err, c.Close())) }()
	w := watch{conn: c, changed: changed, last: -1}
	pause := time.NewTicker(watchEvery)
	defer pause.Stop()
	for {
		if err := s.checkReplaced(); err != nil {
			return err
		}
		if err := w.look(); err != nil && !isBusy(err) {
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

// watch is a call of Watch.
type watch struct {
	conn    *conn
	changed func(executionID string, seq int64)
	// version is the data version of the last read, last the last row of history at that time; -1 before the first read.
	version driver.Value
	last    int64
}

const (
	newestRow   = `SELECT COALESCE(max(rowid), 0) FROM history`
	changedRuns = `SELECT execution_id, max(seq) FROM history WHERE rowid > ?1 AND rowid <= ?2 GROUP BY execution_id`
)

func (w *watch) look() error {
	version, err := w.conn.one("PRAGMA data_version")
	if err != nil || version == w.version {
		return err
	}
	v, err := w.conn.one(newestRow)
	if err != nil {
		return err
	}
	newest, _ := v.(int64)
	if w.last >= 0 && newest > w.last {
		err := w.conn.query(changedRuns, func(row []driver.Value) error {
			seq, _ := row[1].(int64)
			w.changed(textOf(row[0]), seq)
			return nil
		}, w.last, newest)
		if err != nil {
			return err
		}
	}
	w.version, w.last = version, newest
	return nil
}
