package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/history"
)

// DefaultWebhookTimeout is the Timeout of a Webhook without one.
const DefaultWebhookTimeout = outbox.DefaultTimeout

// CheckWebhooks returns WEBHOOK_TARGET_UNKNOWN for the first name that is not in webhooks, as Start does.
func CheckWebhooks(webhooks map[string]Webhook, names ...string) error {
	_, err := targets(webhooks).Admit(names)
	return err
}

// TestDelivery returns a delivery of the event webhook.test, for testing a webhook. It has no run and is not stored.
func TestDelivery(webhook string, at time.Time) history.Delivery { return outbox.Test(webhook, at) }

// Deliveries returns a page of webhook deliveries, newest first, with their attempts and without bodies.
func (r *Runner) Deliveries(ctx context.Context, q history.DeliveryQuery) (history.DeliveryPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.DeliveryPage{}, err
	}
	defer r.p.Leave()
	return r.p.Store.ListDeliveries(ctx, q)
}

// Redeliver makes a webhook delivery pending again, with all its retries and under the same event id, and returns it. If this process sends
// to the target, the call waits for the first attempt, or until its context ends. The error is DELIVERY_NOT_FOUND or the store's.
func (r *Runner) Redeliver(ctx context.Context, id string) (history.Delivery, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return history.Delivery{}, err
	}
	defer r.p.Leave()
	return r.p.Outbox.Redeliver(ctx, r.p.Store, history.DeliveryOf(id))
}
