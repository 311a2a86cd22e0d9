package historypg

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Attacher = (*Store)(nil)

const (
	// keepRuns keeps runs from being deleted until the end of the transaction.
	keepRuns   = `SELECT run, execution_id FROM @runs WHERE execution_id = ANY ($1::text[]) AND phase <> 'deleted' ORDER BY execution_id FOR KEY SHARE`
	attachLink = `INSERT INTO @run_links (to_id, from_id, kind, seq, actor, at) VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bigint)
ON CONFLICT (to_id) DO NOTHING`
	attachEvent = `INSERT INTO @delivery_events (event_id, run, seq, event, created_at, body) VALUES ($1::text, $2::bigint, $3::bigint, $4::text, $5::bigint, $6::text)
ON CONFLICT (event_id) DO NOTHING`
	attachDelivery = `INSERT INTO @deliveries (delivery_id, event_id, run, target, state, due, step, attempts)
VALUES ($1::text, $2::text, $3::bigint, $4::text, $5::text, $6::bigint, $7::integer, $8::integer) ON CONFLICT (delivery_id) DO NOTHING`
	attachAttempt = `INSERT INTO @delivery_attempts (delivery, attempt, process, began_at, ended_at, outcome, status, error)
SELECT number, $2::integer, $3::text, $4::bigint, $5::bigint, $6::text, $7::integer, $8::text FROM @deliveries WHERE delivery_id = $1::text`
	allKeys = `SELECT name, value FROM @keys`
)

// Attach adds what another store has of runs; see history.Attacher.
func (s *Store) Attach(ctx context.Context, a history.Attachments) (added history.Attached, err error) {
	err = s.transactLong(ctx, "links, deliveries and keys were not added", true, func(ctx context.Context, tx pgx.Tx) error {
		added = history.Attached{}
		if len(a.Links) > 0 {
			if _, err := tx.Exec(ctx, s.texts.of(lockLinks)); err != nil {
				return err
			}
		}
		runs, err := s.kept(ctx, tx, &a)
		if err != nil {
			return err
		}
		exec := func(text string, args ...any) int {
			if err != nil {
				return 0
			}
			tag, failed := tx.Exec(ctx, s.texts.of(text), args...)
			err = failed
			return int(tag.RowsAffected())
		}
		for i := range a.Links {
			l := &a.Links[i]
			if runs[l.From] > 0 && runs[l.To] > 0 {
				added.Links += exec(attachLink, key(l.To), key(l.From), string(l.Kind), l.Seq, escaped(l.Actor), l.At.UnixMilli())
			}
		}
		for i := range a.Deliveries {
			d := &a.Deliveries[i]
			run := runs[d.ExecutionID]
			if run == 0 {
				continue
			}
			exec(attachEvent, escaped(d.EventID), run, d.Seq, escaped(string(d.Event)), d.CreatedAt.UnixMilli(), escaped(string(d.Body)))
			n := exec(attachDelivery, escaped(d.ID), escaped(d.EventID), run, escaped(d.Target), string(d.State), history.CeilMillis(d.Due), int32(d.Step), int32(d.Attempts))
			if n == 0 {
				continue
			}
			added.Deliveries++
			for k := range d.Tries {
				t := &d.Tries[k]
				ended := int64(0)
				if !t.EndedAt.IsZero() {
					ended = t.EndedAt.UnixMilli()
				}
				exec(attachAttempt, escaped(d.ID), int32(t.Number), escaped(t.Process), t.BeganAt.UnixMilli(), ended, string(t.Outcome), int32(t.Status), escaped(t.Error))
			}
		}
		for name, value := range a.Keys {
			added.Keys += exec(putKey, escaped(name), value)
		}
		return err
	})
	if err != nil {
		return history.Attached{}, err
	}
	return added, nil
}

// kept locks the stored ones among the runs of attachments, and returns their numbers.
func (s *Store) kept(ctx context.Context, tx pgx.Tx, a *history.Attachments) (runs map[string]int64, err error) {
	var ids []string
	for i := range a.Links {
		ids = append(ids, key(a.Links[i].From), key(a.Links[i].To))
	}
	for i := range a.Deliveries {
		ids = append(ids, key(a.Deliveries[i].ExecutionID))
	}
	slices.Sort(ids)
	runs = map[string]int64{}
	err = each(ctx, tx, s.texts.of(keepRuns), func(row pgx.Rows) error {
		var run int64
		var id string
		err := row.Scan(&run, &id)
		runs[unescaped(id)] = run
		return err
	}, slices.Compact(ids))
	return runs, err
}

// Keys returns all keys; see history.Attacher.
func (s *Store) Keys(ctx context.Context) (keys map[string][]byte, err error) {
	err = s.read(ctx, "the keys could not be read", func(q queries) error {
		keys = map[string][]byte{}
		return each(ctx, q, s.texts.of(allKeys), func(row pgx.Rows) error {
			var name string
			var value []byte
			err := row.Scan(&name, &value)
			keys[unescaped(name)] = value
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}
