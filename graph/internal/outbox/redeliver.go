package outbox

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// redeliverLook is the polling interval of Redeliver.
const redeliverLook = 50 * time.Millisecond

// Redeliver makes a delivery pending again, with all of its retries, and returns it. If this process sends to its target, Redeliver waits for
// the first attempt, or until the context or that of the Sender ends. The error is DELIVERY_NOT_FOUND or the store's.
func (b *Box) Redeliver(ctx context.Context, store history.Store, id string) (history.Delivery, error) {
	d, err := find(ctx, store, id)
	if err != nil {
		return d, err
	}
	if err := store.RequeueDelivery(ctx, id, b.Now().Truncate(time.Millisecond)); err != nil {
		return d, err
	}
	before := d.Attempts
	if b.Sender == nil || !b.Sender.Stored([]history.Delivery{d}) {
		return find(ctx, store, id)
	}
	for {
		if d, err = find(context.WithoutCancel(ctx), store, id); err != nil {
			return d, err
		}
		if n := len(d.Tries); d.State != history.DeliveryPending || n > before && !d.Tries[n-1].EndedAt.IsZero() {
			return d, nil // after an attempt, or because an earlier attempt has delivered it meanwhile
		}
		if wait.For(ctx, redeliverLook) != nil || b.Sender.Context.Err() != nil {
			return d, nil
		}
	}
}

// find reads a delivery.
func find(ctx context.Context, store history.Store, id string) (history.Delivery, error) {
	page, err := store.ListDeliveries(ctx, history.DeliveryQuery{DeliveryID: id, Limit: 1})
	if err != nil {
		return history.Delivery{}, err
	}
	if len(page.Deliveries) == 0 {
		return history.Delivery{}, history.UnknownDelivery(id)
	}
	return page.Deliveries[0], nil
}
