package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/history"
)

// DefaultWebhookTimeout is the longest attempt to a Webhook without a Timeout.
const DefaultWebhookTimeout = outbox.DefaultTimeout

// CheckWebhooks returns WEBHOOK_TARGET_UNKNOWN for the first name that is not one of the webhooks, as Start does.
func CheckWebhooks(webhooks map[string]Webhook, names ...string) error {
	_, err := targets(webhooks).Admit(names)
	return err
}

// TestDelivery returns a delivery of the event webhook.test for trying a webhook. It belongs to no run and is not stored.
func TestDelivery(webhook string, at time.Time) history.Delivery { return outbox.Test(webhook, at) }

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
