package historymem

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// delivery is a delivery with its number, which orders deliveries, and the end of the lease of its newest attempt.
type delivery struct {
	history.Delivery
	number int64
	leased time.Time
}

// addDeliveries stores a batch's deliveries.
func (s *Store) addDeliveries(b *history.Batch) {
	for i := range b.Deliveries {
		d := b.Deliveries[i]
		d.ExecutionID, d.Seq, d.State, d.Step, d.Attempts, d.Tries = b.ExecutionID, b.Execution.Seq, history.DeliveryPending, 0, 0, nil
		d.Body, d.CreatedAt, d.Due = bytes.Clone(d.Body), milli(d.CreatedAt), time.UnixMilli(history.CeilMillis(d.Due)).UTC()
		s.numbered++
		s.deliveries = append(s.deliveries, &delivery{Delivery: d, number: s.numbered})
	}
}

func (s *Store) dropDeliveries(executionID string) {
	s.deliveries = slices.DeleteFunc(s.deliveries, func(d *delivery) bool { return d.ExecutionID == executionID })
}

// notifies reports whether a delivery of one of the runs is pending.
func (s *Store) notifies(runs []history.Execution) bool {
	return slices.ContainsFunc(s.deliveries, func(d *delivery) bool {
		return d.State == history.DeliveryPending && slices.ContainsFunc(runs, func(e history.Execution) bool { return e.ID == d.ExecutionID })
	})
}

// delivery returns the delivery with an id, or nil.
func (s *Store) delivery(id string) *delivery {
	if i := slices.IndexFunc(s.deliveries, func(d *delivery) bool { return d.ID == id }); i >= 0 {
		return s.deliveries[i]
	}
	return nil
}

// free reports whether no process is sending a delivery.
func (s *Store) free(d *delivery) bool {
	now := s.clock.Leases()
	return !d.leased.After(milli(now)) || d.leased.After(now.Add(storeclock.MaxStep))
}

// DueDeliveries returns the due deliveries of a target; see history.Store.
func (s *Store) DueDeliveries(ctx context.Context, target string, now time.Time, limit int) (due []history.Delivery, err error) {
	err = s.do(ctx, func() {
		var found []*delivery
		for _, d := range s.deliveries {
			if d.State == history.DeliveryPending && d.Target == target && !d.Due.After(now) && s.free(d) {
				found = append(found, d)
			}
		}
		slices.SortStableFunc(found, func(a, b *delivery) int { return a.Due.Compare(b.Due) })
		if limit > 0 {
			found = found[:min(limit, len(found))]
		}
		for _, d := range found {
			due = append(due, d.listed())
		}
	})
	return due, err
}

// listed returns the delivery in the form used in lists.
func (d *delivery) listed() history.Delivery {
	out := d.Delivery
	out.Body, out.Tries = nil, nil
	return out
}

// ClaimDelivery begins an attempt; see history.Store.
func (s *Store) ClaimDelivery(ctx context.Context, c history.DeliveryClaim) (out history.Delivery, claimed bool, err error) {
	err = s.do(ctx, func() {
		d := s.delivery(c.DeliveryID)
		if d == nil || d.State != history.DeliveryPending || d.Attempts != c.Attempt-1 || !s.free(d) {
			return
		}
		d.Attempts, claimed = c.Attempt, true
		d.leased = time.UnixMilli(history.CeilMillis(s.clock.Leases().Add(c.TTL)))
		d.Tries = append(d.Tries, history.DeliveryAttempt{Number: c.Attempt, Process: c.Process, BeganAt: milli(c.At)})
		out = d.listed()
		out.Body = bytes.Clone(d.Body)
	})
	return out, claimed, err
}

// SettleDelivery ends an attempt; see history.Store.
func (s *Store) SettleDelivery(ctx context.Context, r history.Settlement) error {
	return s.change(ctx, r.DeliveryID, func(d *delivery) bool {
		if r.Attempt < 1 || r.Attempt > len(d.Tries) {
			return false
		}
		a := &d.Tries[r.Attempt-1]
		a.EndedAt, a.Outcome, a.Status, a.Error = milli(r.At), r.Outcome, r.Status, r.Error
		if d.State == history.DeliveryPending && d.Attempts == r.Attempt || r.State == history.DeliveryDone {
			d.State, d.Due, d.Step, d.leased = r.State, time.UnixMilli(history.CeilMillis(r.Due)).UTC(), r.Step, time.Time{}
		}
		return true
	})
}

// RequeueDelivery makes a delivery pending again; see history.Store.
func (s *Store) RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error {
	return s.change(ctx, deliveryID, func(d *delivery) bool {
		d.State, d.Due, d.Step = history.DeliveryPending, time.UnixMilli(history.CeilMillis(due)).UTC(), 0
		return true
	})
}

// change changes a delivery. do reports whether the delivery is in the state that it changes.
func (s *Store) change(ctx context.Context, id string, do func(d *delivery) bool) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if d := s.delivery(id); d == nil || !do(d) {
		return history.UnknownDelivery(id)
	}
	return nil
}

// ListDeliveries returns a page of deliveries; see history.Store.
func (s *Store) ListDeliveries(ctx context.Context, q history.DeliveryQuery) (page history.DeliveryPage, err error) {
	before, err := q.Check()
	if err != nil {
		return page, err
	}
	err = s.do(ctx, func() {
		var last int64
		for _, d := range slices.Backward(s.deliveries) {
			switch {
			case before > 0 && d.number >= before, q.ExecutionID != "" && d.ExecutionID != q.ExecutionID, q.DeliveryID != "" && d.ID != q.DeliveryID,
				q.Target != "" && d.Target != q.Target, len(q.States) > 0 && !slices.Contains(q.States, d.State):
				continue
			}
			if len(page.Deliveries) == q.Limit {
				page.NextCursor = strconv.FormatInt(last, 10)
				return
			}
			out := d.listed()
			out.Tries = slices.Clone(d.Tries)
			if q.Bodies {
				out.Body = bytes.Clone(d.Body)
			}
			page.Deliveries, last = append(page.Deliveries, out), d.number
		}
	})
	return page, err
}
