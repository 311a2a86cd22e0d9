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

const nextTimer = `SELECT (SELECT min(due) FROM @timers), version, min_reader, min_writer, id FROM @meta`

// NextTimer returns the earliest due time of all timers; see history.Store. Processes ask it all the time, so it also tells them that the store
// was replaced, or that a newer release has migrated it.
func (s *Store) NextTimer(ctx context.Context) (due time.Time, ok bool, err error) {
	var ms *int64
	var id identity
	err = s.read(ctx, "the timers could not be read", func(q queries) error {
		found, err := first(ctx, q, s.texts.of(nextTimer), nil, &ms, &id.version, &id.minReader, &id.minWriter, &id.id)
		if err == nil && !found {
			err = s.noMeta()
		}
		return err
	})
	if err == nil {
		err = s.same(id)
	}
	if err != nil || ms == nil {
		return time.Time{}, false, err
	}
	return timeOf(*ms), true, nil
}
