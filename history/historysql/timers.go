package historysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	putTimer = `INSERT INTO timers (execution_id, timer_key, due) VALUES (?1, ?2, ?3)
ON CONFLICT (execution_id, timer_key) DO UPDATE SET due = excluded.due WHERE due <> excluded.due`
	dropOtherTimers = `DELETE FROM timers WHERE execution_id = ?1 AND timer_key NOT IN (SELECT value FROM json_each(?2))`
)

// storeTimers stores a batch's timers. It does not write unchanged rows.
func storeTimers(c *conn, b *history.Batch) error {
	if !b.SetTimers && !b.Execution.Phase.Terminal() {
		return nil
	}
	if len(b.Timers) == 0 || b.Execution.Phase.Terminal() {
		_, err := c.exec(dropTimers, b.ExecutionID)
		return err
	}
	keys := make([]any, len(b.Timers))
	for i := range b.Timers {
		t := &b.Timers[i]
		keys[i] = t.Key
		if _, err := c.exec(putTimer, b.ExecutionID, t.Key, history.CeilMillis(t.Due)); err != nil {
			return err
		}
	}
	_, err := c.exec(dropOtherTimers, b.ExecutionID, string(jsonvalue.Append(nil, keys)))
	return err
}

const dueTimers = `SELECT execution_id, timer_key, due FROM timers WHERE due <= ?1 ORDER BY due, execution_id, timer_key LIMIT ?2`

// DueTimers returns timers due at or before now; see history.Store.
func (s *Store) DueTimers(ctx context.Context, now time.Time, limit int) ([]history.Timer, error) {
	var out []history.Timer
	err := s.readers.query(ctx, dueTimers, func(rows *sql.Rows) error {
		var t history.Timer
		var due int64
		err := rows.Scan(&t.ExecutionID, &t.Key, &due)
		t.Due = time.UnixMilli(due).UTC()
		out = append(out, t)
		return err
	}, now.UnixMilli(), sqlLimit(limit))
	if err != nil {
		return nil, failure("the timers could not be read", err)
	}
	return out, nil
}

// sqlLimit converts a limit to SQLite's form; 0 means all.
func sqlLimit(limit int) int64 {
	if limit <= 0 {
		return -1
	}
	return int64(limit)
}
