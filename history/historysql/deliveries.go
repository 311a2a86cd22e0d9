package historysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	putDeliveryEvent = `INSERT INTO delivery_events (event_id, execution_id, seq, event, created_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (event_id) DO NOTHING`
	putDelivery      = `INSERT INTO deliveries (delivery_id, event_id, execution_id, target, state, due) VALUES (?1, ?2, ?3, ?4, 'pending', ?5)`
)

// storeDeliveries stores a batch's deliveries. The body of an event is stored once.
func storeDeliveries(c *conn, b *history.Batch) error {
	for i := range b.Deliveries {
		d := &b.Deliveries[i]
		if i == 0 || d.EventID != b.Deliveries[i-1].EventID {
			_, err := c.exec(putDeliveryEvent, d.EventID, b.ExecutionID, b.Execution.Seq, string(d.Event), d.CreatedAt.UnixMilli(), string(d.Body))
			if err != nil {
				return err
			}
		}
		if _, err := c.exec(putDelivery, d.ID, d.EventID, b.ExecutionID, d.Target, history.CeilMillis(d.Due)); err != nil {
			return err
		}
	}
	return nil
}

func deliveryBytes(b *history.Batch) (n int) {
	if len(b.Deliveries) > 0 {
		n = len(b.Deliveries[0].Body) // the others share it
	}
	return n
}

// deliveryOf parses a row of readDelivery or a similar query. number orders deliveries.
func deliveryOf(row []driver.Value) (d history.Delivery, number int64) {
	whole := func(i int) int64 {
		n, _ := row[i].(int64)
		return n
	}
	d = history.Delivery{
		ID: textOf(row[0]), EventID: textOf(row[1]), ExecutionID: textOf(row[2]), Target: textOf(row[3]), State: history.DeliveryState(textOf(row[4])),
		Due: time.UnixMilli(whole(5)).UTC(), Step: int(whole(6)), Attempts: int(whole(7)), Seq: whole(8), Event: history.RunEvent(textOf(row[9])),
		CreatedAt: time.UnixMilli(whole(10)).UTC(),
	}
	if body := textOf(row[11]); body != "" {
		d.Body = []byte(body)
	}
	return d, whole(12)
}

// leaseBounds returns the bounds of the end of a valid lease. A lease that ends after wrong was set by a wrong clock.
func (s *Store) leaseBounds() (over, wrong int64) {
	now := s.clock.Leases()
	return now.UnixMilli(), now.Add(storeclock.MaxStep).UnixMilli()
}

const dueDeliveries = `SELECT d.delivery_id, d.event_id, d.execution_id, d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, '', d.number
FROM deliveries AS d INDEXED BY deliveries_due JOIN delivery_events AS e ON e.event_id = d.event_id
WHERE d.state = 'pending' AND d.target = ?1 AND d.due <= ?2 AND (d.leased <= ?3 OR d.leased > ?4)
ORDER BY d.due, d.number LIMIT ?5`

// DueDeliveries returns the due deliveries of a target; see history.Store.
func (s *Store) DueDeliveries(ctx context.Context, target string, now time.Time, limit int) (due []history.Delivery, err error) {
	over, wrong := s.leaseBounds()
	err = reader{ctx, &s.readers}.query(dueDeliveries, func(row []driver.Value) error {
		d, _ := deliveryOf(row)
		due = append(due, d)
		return nil
	}, target, now.UnixMilli(), over, wrong, sqlLimit(limit))
	return due, failure("the deliveries could not be read", err)
}

const (
	claimDelivery = `UPDATE deliveries SET attempts = ?2, leased = ?3
WHERE delivery_id = ?1 AND state = 'pending' AND attempts = ?2 - 1 AND (leased <= ?4 OR leased > ?5)`
	beginDeliveryAttempt = `INSERT INTO delivery_attempts (delivery, attempt, process, began_at) SELECT number, ?2, ?3, ?4 FROM deliveries WHERE delivery_id = ?1`
	readDelivery         = `SELECT d.delivery_id, d.event_id, d.execution_id, d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, e.body, d.number
FROM deliveries AS d JOIN delivery_events AS e ON e.event_id = d.event_id WHERE d.delivery_id = ?1`
)

// ClaimDelivery begins an attempt; see history.Store.
func (s *Store) ClaimDelivery(ctx context.Context, k history.DeliveryClaim) (d history.Delivery, claimed bool, err error) {
	err = s.share(ctx, "the delivery was not claimed", 0, func(c *conn) error {
		claimed = false // the transaction may be a second attempt
		over, wrong := s.leaseBounds()
		until := history.CeilMillis(s.clock.Leases().Add(k.TTL))
		n, err := c.exec(claimDelivery, k.DeliveryID, int64(k.Attempt), until, over, wrong)
		if err != nil || n == 0 {
			return err
		}
		claimed = true
		if _, err := c.exec(beginDeliveryAttempt, k.DeliveryID, int64(k.Attempt), k.Process, k.At.UnixMilli()); err != nil {
			return err
		}
		return c.query(readDelivery, func(row []driver.Value) error {
			d, _ = deliveryOf(row)
			return nil
		}, k.DeliveryID)
	})
	if err != nil {
		return history.Delivery{}, false, err
	}
	return d, claimed, nil
}

const (
	endDeliveryAttempt = `UPDATE delivery_attempts SET ended_at = ?3, outcome = ?4, status = ?5, error = ?6
WHERE delivery = (SELECT number FROM deliveries WHERE delivery_id = ?1) AND attempt = ?2`
	settleDelivery = `UPDATE deliveries SET state = ?3, due = ?4, step = ?5, leased = 0
WHERE delivery_id = ?1 AND (state = 'pending' AND attempts = ?2 OR ?3 = 'delivered')`
)

// SettleDelivery ends an attempt; see history.Store.
func (s *Store) SettleDelivery(ctx context.Context, r history.Settlement) error {
	return s.share(ctx, "the attempt was not recorded", 0, func(c *conn) error {
		n, err := c.exec(endDeliveryAttempt, r.DeliveryID, int64(r.Attempt), r.At.UnixMilli(), string(r.Outcome), int64(r.Status), r.Error)
		if err != nil || n == 0 {
			return cmp.Or(err, history.UnknownDelivery(r.DeliveryID))
		}
		_, err = c.exec(settleDelivery, r.DeliveryID, int64(r.Attempt), string(r.State), history.CeilMillis(r.Due), int64(r.Step))
		return err
	})
}

const requeueDelivery = `UPDATE deliveries SET state = 'pending', due = ?2, step = 0 WHERE delivery_id = ?1`

// RequeueDelivery makes a delivery pending again; see history.Store.
func (s *Store) RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error {
	return s.share(ctx, "the delivery was not made pending", 0, func(c *conn) error {
		n, err := c.exec(requeueDelivery, deliveryID, history.CeilMillis(due))
		if err != nil || n == 0 {
			return cmp.Or(err, history.UnknownDelivery(deliveryID))
		}
		return nil
	})
}

const deliveryAttempts = `SELECT delivery, attempt, process, began_at, ended_at, outcome, status, error FROM delivery_attempts WHERE delivery IN (SELECT value FROM json_each(?1))
ORDER BY delivery, attempt`

// ListDeliveries returns a page of deliveries; see history.Store.
func (s *Store) ListDeliveries(ctx context.Context, q history.DeliveryQuery) (page history.DeliveryPage, err error) {
	before, err := q.Check()
	if err != nil {
		return page, err
	}
	in, end, err := s.readers.snapshot(ctx)
	if err != nil {
		return page, failure("the deliveries could not be read", err)
	}
	defer end()
	places, numbers := map[int64]int{}, []any{}
	var last int64
	err = in.query(deliveriesStatement(&q), func(row []driver.Value) error {
		if len(page.Deliveries) == q.Limit {
			page.NextCursor = strconv.FormatInt(last, 10)
			return nil
		}
		var d history.Delivery
		d, last = deliveryOf(row)
		places[last] = len(page.Deliveries)
		page.Deliveries, numbers = append(page.Deliveries, d), append(numbers, float64(last))
		return nil
	}, cmp.Or(before, math.MaxInt64), q.Target, int64(q.Limit)+1, q.ExecutionID, q.DeliveryID)
	if err == nil {
		err = in.query(deliveryAttempts, func(row []driver.Value) error {
			number, _ := row[0].(int64)
			d := &page.Deliveries[places[number]]
			d.Tries = append(d.Tries, attemptOf(row))
			return nil
		}, string(jsonvalue.Append(nil, numbers)))
	}
	if err != nil {
		return history.DeliveryPage{}, failure("the deliveries could not be read", err)
	}
	return page, nil
}

func attemptOf(row []driver.Value) history.DeliveryAttempt {
	number, _ := row[1].(int64)
	began, _ := row[3].(int64)
	ended, _ := row[4].(int64)
	status, _ := row[6].(int64)
	a := history.DeliveryAttempt{
		Number: int(number), Process: textOf(row[2]), BeganAt: time.UnixMilli(began).UTC(), Outcome: history.SendOutcome(textOf(row[5])),
		Status: int(status), Error: textOf(row[7]),
	}
	if ended != 0 {
		a.EndedAt = time.UnixMilli(ended).UTC()
	}
	return a
}

const listDeliveries = `SELECT d.delivery_id, d.event_id, d.execution_id, d.target, d.state, d.due, d.step, d.attempts, e.seq, e.event, e.created_at, %s, d.number
FROM deliveries AS d JOIN delivery_events AS e ON e.event_id = d.event_id
WHERE %s d.number < ?1 AND (?2 = '' OR d.target = ?2) ORDER BY d.number DESC LIMIT ?3`

// deliveriesStatement returns the query for a page of deliveries.
func deliveriesStatement(q *history.DeliveryQuery) string {
	var filter strings.Builder
	switch {
	case q.DeliveryID != "":
		filter.WriteString("d.delivery_id = ?5 AND ")
	case q.ExecutionID != "":
		filter.WriteString("d.execution_id = ?4 AND ")
	}
	if q.DeliveryID != "" && q.ExecutionID != "" {
		filter.WriteString("d.execution_id = ?4 AND ")
	}
	if len(q.States) > 0 {
		var known []string
		for _, state := range history.DeliveryStates() {
			for _, asked := range q.States {
				if asked == state {
					known = append(known, "'"+string(state)+"'")
				}
			}
		}
		fmt.Fprintf(&filter, "d.state IN (%s) AND ", strings.Join(known, ", "))
	}
	// Numbered parameters must all be used, or they cannot be bound.
	filter.WriteString("?4 IS NOT NULL AND ?5 IS NOT NULL AND")
	body := "''"
	if q.Bodies {
		body = "e.body"
	}
	return fmt.Sprintf(listDeliveries, body, filter.String())
}
