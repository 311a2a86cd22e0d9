package historysql

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Attacher = (*Store)(nil)

const (
	runStored  = `EXISTS (SELECT 1 FROM executions WHERE execution_id = ?2 AND phase <> 'deleted')`
	attachLink = `INSERT INTO run_links (to_id, from_id, kind, seq, actor, at) SELECT ?1, ?2, ?3, ?4, nullif(?5, ''), ?6 WHERE ` + runStored + `
AND EXISTS (SELECT 1 FROM executions WHERE execution_id = ?1 AND phase <> 'deleted') ON CONFLICT (to_id) DO NOTHING`
	attachEvent = `INSERT INTO delivery_events (event_id, execution_id, seq, event, created_at, body) SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ` + runStored + `
ON CONFLICT (event_id) DO NOTHING`
	attachDelivery = `INSERT INTO deliveries (delivery_id, execution_id, event_id, target, state, due, step, attempts) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE ` + runStored + `
ON CONFLICT (delivery_id) DO NOTHING`
	attachAttempt = `INSERT INTO delivery_attempts (delivery, attempt, process, began_at, ended_at, outcome, status, error)
SELECT number, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM deliveries WHERE delivery_id = ?1`
	allKeys = `SELECT name, value FROM keys`
)

// Attach adds what another store has of runs; see history.Attacher.
func (s *Store) Attach(ctx context.Context, a history.Attachments) (added history.Attached, err error) {
	err = s.write(ctx, "links, deliveries and keys were not added", func(c *conn) error {
		added = history.Attached{} // the transaction may be a second attempt
		for i := range a.Links {
			l := &a.Links[i]
			n, err := c.exec(attachLink, l.To, l.From, string(l.Kind), l.Seq, l.Actor, l.At.UnixMilli())
			if err != nil {
				return err
			}
			added.Links += int(n)
		}
		for i := range a.Deliveries {
			n, err := attach(c, &a.Deliveries[i])
			if err != nil {
				return err
			}
			added.Deliveries += int(n)
		}
		for name, key := range a.Keys {
			n, err := c.exec(putKey, name, key)
			if err != nil {
				return err
			}
			added.Keys += int(n)
		}
		return nil
	})
	if err != nil {
		return history.Attached{}, err
	}
	return added, nil
}

func attach(c *conn, d *history.Delivery) (added int64, err error) {
	if _, err := c.exec(attachEvent, d.EventID, d.ExecutionID, d.Seq, string(d.Event), d.CreatedAt.UnixMilli(), string(d.Body)); err != nil {
		return 0, err
	}
	added, err = c.exec(attachDelivery, d.ID, d.ExecutionID, d.EventID, d.Target, string(d.State), history.CeilMillis(d.Due), int64(d.Step), int64(d.Attempts))
	if err != nil || added == 0 {
		return 0, err
	}
	for i := range d.Tries {
		t := &d.Tries[i]
		ended := int64(0)
		if !t.EndedAt.IsZero() {
			ended = t.EndedAt.UnixMilli()
		}
		if _, err := c.exec(attachAttempt, d.ID, int64(t.Number), t.Process, t.BeganAt.UnixMilli(), ended, string(t.Outcome), int64(t.Status), t.Error); err != nil {
			return 0, err
		}
	}
	return added, nil
}

// Keys returns all keys; see history.Attacher.
func (s *Store) Keys(ctx context.Context) (map[string][]byte, error) {
	keys := map[string][]byte{}
	err := reader{ctx, &s.readers}.query(allKeys, func(row []driver.Value) error {
		value, _ := row[1].([]byte)
		keys[textOf(row[0])] = slices.Clone(value)
		return nil
	})
	if err != nil {
		return nil, failure("the keys could not be read", err)
	}
	return keys, nil
}
