package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Deliveries returns a page of webhook deliveries, the newest first, with their attempts and without bodies.
func (r *Runner) Deliveries(ctx context.Context, q history.DeliveryQuery) (history.DeliveryPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.DeliveryPage{}, err
	}
	defer r.tasks.Done()
	return r.store.ListDeliveries(ctx, q)
}

// redeliverLook is how often the outcome of a delivery that was made pending again is looked for.
const redeliverLook = 50 * time.Millisecond

// Redeliver makes a webhook delivery, whatever its state, pending again, with all of its steps before it, under the same event id. If this
// process sends to its target, the call waits for the first attempt, or until its context ends; otherwise it returns at once. It returns
// where the delivery stands. DELIVERY_NOT_FOUND if there is none.
func (r *Runner) Redeliver(ctx context.Context, id string) (history.Delivery, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return history.Delivery{}, err
	}
	defer r.tasks.Done()
	id = history.DeliveryOf(id)
	d, err := r.delivery(ctx, id)
	if err != nil {
		return d, err
	}
	if err := r.store.RequeueDelivery(ctx, id, r.now().Truncate(time.Millisecond)); err != nil {
		return d, err
	}
	before := d.Attempts
	if sender := r.outbox.Sender; sender == nil || !sender.Stored([]history.Delivery{d}) {
		return r.delivery(ctx, id)
	}
	for {
		if d, err = r.delivery(detached(ctx), id); err != nil {
			return d, err
		}
		if n := len(d.Tries); d.State != history.DeliveryPending || n > before && !d.Tries[n-1].EndedAt.IsZero() {
			return d, nil // or the attempt that was under way has delivered it
		}
		if wait.For(ctx, redeliverLook) != nil || r.ctx.Err() != nil {
			return d, nil
		}
	}
}

func (r *Runner) delivery(ctx context.Context, id string) (history.Delivery, error) {
	page, err := r.store.ListDeliveries(ctx, history.DeliveryQuery{DeliveryID: id, Limit: 1})
	if err != nil {
		return history.Delivery{}, err
	}
	if len(page.Deliveries) == 0 {
		return history.Delivery{}, history.UnknownDelivery(id)
	}
	return page.Deliveries[0], nil
}
