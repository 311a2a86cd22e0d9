package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Deliveries returns a page of webhook deliveries, the newest first, with their attempts and without bodies.
func (r *Runner) Deliveries(ctx context.Context, q history.DeliveryQuery) (history.DeliveryPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.DeliveryPage{}, err
	}
	defer r.tasks.Done()
	return r.store.ListDeliveries(ctx, q)
}

// Redeliver makes a webhook delivery, whatever its state, pending again, with all of its steps before it, under the same event id. If this
// process sends to its target, the call waits for the first attempt, or until its context ends; otherwise it returns at once. It returns
// where the delivery stands. DELIVERY_NOT_FOUND if there is none.
func (r *Runner) Redeliver(ctx context.Context, id string) (history.Delivery, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return history.Delivery{}, err
	}
	defer r.tasks.Done()
	return r.outbox.Redeliver(ctx, r.store, history.DeliveryOf(id))
}
