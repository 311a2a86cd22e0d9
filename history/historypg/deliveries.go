package historypg

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/history"
)

const deliveryColumns = `d.delivery_id, d.event_id, coalesce((SELECT r.execution_id FROM @runs AS r WHERE r.run = d.run), ''), d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, `

// deliveryOf reads a row of deliveryColumns, a body and the number, which orders deliveries.
func deliveryOf(row pgx.Rows) (d history.Delivery, number int64, err error) {
	var due, created int64
	var step, attempts int32
	var state, event, body string
	err = row.Scan(&d.ID, &d.EventID, &d.ExecutionID, &d.Target, &state, &due, &step, &attempts, &d.Seq, &event, &created, &body, &number)
	d.ID, d.EventID, d.ExecutionID, d.Target = unescaped(d.ID), unescaped(d.EventID), unescaped(d.ExecutionID), unescaped(d.Target)
	d.State, d.Event, d.Due, d.CreatedAt, d.Step, d.Attempts = history.DeliveryState(state), history.RunEvent(unescaped(event)), timeOf(due), timeOf(created), int(step), int(attempts)
	if body != "" {
		d.Body = []byte(unescaped(body))
	}
	return d, number, err
}

// free tells whether no attempt of a delivery is under way. A lease that ends more than a day ahead was set by a wrong clock.
const free = `(d.leased <= {now} OR d.leased > {now} + ` + day + `)`

const dueDeliveries = `WITH {clock} SELECT ` + deliveryColumns + `'', d.number FROM @deliveries AS d JOIN @delivery_events AS e USING (event_id)
WHERE d.state = 'pending' AND d.target = $2::text AND d.due <= $3::bigint AND ` + free + ` ORDER BY d.due, d.number LIMIT $4::bigint`

// DueDeliveries returns the due deliveries of a target; see history.Store.
func (s *Store) DueDeliveries(ctx context.Context, target string, now time.Time, limit int) (due []history.Delivery, err error) {
	err = s.read(ctx, "the deliveries could not be read", func(q queries) error {
		due = nil
		return each(ctx, q, s.texts.of(dueDeliveries), func(row pgx.Rows) error {
			d, _, err := deliveryOf(row)
			due = append(due, d)
			return err
		}, s.at(), key(target), now.UnixMilli(), limitOf(limit))
	})
	return due, err
}

const claimDelivery = `WITH {clock}, d AS (UPDATE @deliveries AS d SET attempts = $3::integer, leased = {now} + $4::bigint
    WHERE d.delivery_id = $2::text AND d.state = 'pending' AND d.attempts = $3::integer - 1 AND ` + free + ` RETURNING d.*),
begun AS (INSERT INTO @delivery_attempts (delivery, attempt, process, began_at) SELECT number, $3::integer, $5::text, $6::bigint FROM d)
SELECT ` + deliveryColumns + `e.body, d.number FROM d JOIN @delivery_events AS e USING (event_id)`

// ClaimDelivery begins an attempt; see history.Store.
func (s *Store) ClaimDelivery(ctx context.Context, k history.DeliveryClaim) (d history.Delivery, claimed bool, err error) {
	err = s.write(ctx, "the delivery was not claimed", false, func(ctx context.Context, c *pgxpool.Conn) error {
		claimed = false
		return each(ctx, c, s.texts.of(claimDelivery), func(row pgx.Rows) (err error) {
			claimed = true
			d, _, err = deliveryOf(row)
			return err
		}, s.at(), key(k.DeliveryID), int32(min(k.Attempt, math.MaxInt32)), int64((k.TTL+time.Millisecond-1)/time.Millisecond), escaped(k.Process), k.At.UnixMilli())
	})
	if err != nil {
		return history.Delivery{}, false, err
	}
	return d, claimed, nil
}

const settleDelivery = `WITH settled AS (UPDATE @deliveries SET state = $4::text, due = $5::bigint, step = $6::integer, leased = 0
    WHERE delivery_id = $1::text AND (state = 'pending' AND attempts = $2::integer OR $4::text = 'delivered')
        AND EXISTS (SELECT 1 FROM @delivery_attempts AS a WHERE a.delivery = number AND a.attempt = $2::integer))
UPDATE @delivery_attempts SET ended_at = $3::bigint, outcome = $7::text, status = $8::integer, error = $9::text
WHERE delivery = (SELECT number FROM @deliveries WHERE delivery_id = $1::text) AND attempt = $2::integer`

// SettleDelivery ends an attempt; see history.Store.
func (s *Store) SettleDelivery(ctx context.Context, r history.Settlement) error {
	return s.deliver(ctx, "the attempt was not recorded", r.DeliveryID, settleDelivery, int32(min(r.Attempt, math.MaxInt32)), r.At.UnixMilli(), string(r.State),
		history.CeilMillis(r.Due), int32(min(r.Step, math.MaxInt32)), string(r.Outcome), int32(r.Status), escaped(r.Error))
}

const requeueDelivery = `UPDATE @deliveries SET state = 'pending', due = $2::bigint, step = 0 WHERE delivery_id = $1::text`

// RequeueDelivery makes a delivery pending again; see history.Store.
func (s *Store) RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error {
	return s.deliver(ctx, "the delivery was not made pending", deliveryID, requeueDelivery, history.CeilMillis(due))
}

func (s *Store) deliver(ctx context.Context, doing, id, text string, args ...any) error {
	return s.write(ctx, doing, true, func(ctx context.Context, c *pgxpool.Conn) error {
		tag, err := c.Exec(ctx, s.texts.of(text), append([]any{key(id)}, args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			err = history.UnknownDelivery(id)
		}
		return err
	})
}

const (
	listDeliveries = `SELECT ` + deliveryColumns + `CASE WHEN $3::boolean THEN e.body ELSE '' END, d.number FROM @deliveries AS d JOIN @delivery_events AS e USING (event_id)
WHERE d.number < $1::bigint AND ($2::text = '' OR d.target = $2::text)`
	deliveryAttempts = `SELECT delivery, attempt, process, began_at, ended_at, outcome, status, error FROM @delivery_attempts
WHERE delivery = ANY ($1::bigint[]) ORDER BY delivery, attempt`
)

// ListDeliveries returns a page of deliveries; see history.Store.
func (s *Store) ListDeliveries(ctx context.Context, q history.DeliveryQuery) (page history.DeliveryPage, err error) {
	before, err := q.Check()
	if err != nil {
		return page, err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	st := statement{args: []any{before, key(q.Target), q.Bodies}}
	st.add(listDeliveries)
	if q.ExecutionID != "" {
		st.add(" AND d.run = (SELECT run FROM @runs WHERE execution_id = ", st.arg(key(q.ExecutionID), "text"), ")")
	}
	if q.DeliveryID != "" {
		st.add(" AND d.delivery_id = ", st.arg(key(q.DeliveryID), "text"))
	}
	if len(q.States) > 0 {
		var states []string
		for _, state := range q.States {
			states = append(states, key(string(state)))
		}
		st.add(" AND d.state = ANY (", st.arg(states, "text[]"), ")")
	}
	st.add(" ORDER BY d.number DESC LIMIT ", st.arg(int64(q.Limit+1), "bigint"))
	err = s.snapshot(ctx, "the deliveries could not be read", func(in queries) error {
		page = history.DeliveryPage{}
		var numbers []int64
		err := each(ctx, in, s.texts.of(st.text.String()), func(row pgx.Rows) error {
			d, number, err := deliveryOf(row)
			if len(numbers) == q.Limit {
				page.NextCursor = strconv.FormatInt(numbers[q.Limit-1], 10)
				return err
			}
			page.Deliveries, numbers = append(page.Deliveries, d), append(numbers, number)
			return err
		}, st.args...)
		if err != nil || len(numbers) == 0 {
			return err
		}
		at := map[int64]int{}
		for i, n := range numbers {
			at[n] = i
		}
		return each(ctx, in, s.texts.of(deliveryAttempts), func(row pgx.Rows) error {
			var a history.DeliveryAttempt
			var number, began, ended int64
			var attempt, status int32
			var outcome string
			err := row.Scan(&number, &attempt, &a.Process, &began, &ended, &outcome, &status, &a.Error)
			a.Number, a.Process, a.BeganAt, a.Outcome, a.Status, a.Error = int(attempt), unescaped(a.Process), timeOf(began), history.SendOutcome(outcome), int(status), unescaped(a.Error)
			if ended != 0 {
				a.EndedAt = timeOf(ended)
			}
			d := &page.Deliveries[at[number]]
			d.Tries = append(d.Tries, a)
			return err
		}, numbers)
	})
	if err != nil {
		return history.DeliveryPage{}, err
	}
	return page, nil
}
