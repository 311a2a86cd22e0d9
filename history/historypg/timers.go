package historypg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

const dueTimers = `SELECT r.execution_id, t.key, t.due FROM @timers AS t JOIN @runs AS r USING (run) WHERE t.due <= $1::bigint
ORDER BY t.due, r.execution_id, t.key LIMIT $2::bigint`

// DueTimers returns timers due at or before now; see history.Store.
func (s *Store) DueTimers(ctx context.Context, now time.Time, limit int) (out []history.Timer, err error) {
	err = s.read(ctx, "the timers could not be read", func(q queries) error {
		out = nil
		return each(ctx, q, s.texts.of(dueTimers), func(row pgx.Rows) error {
			var t history.Timer
			var due int64
			err := row.Scan(&t.ExecutionID, &t.Key, &due)
			t.ExecutionID, t.Key, t.Due = unescaped(t.ExecutionID), unescaped(t.Key), timeOf(due)
			out = append(out, t)
			return err
		}, now.UnixMilli(), limitOf(limit))
	})
	return out, err
}
