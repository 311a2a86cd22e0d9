package cli

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// reading is the store of a runner that only reads. Such a runner has no clock, so that it finds no timer due; who is at
// work on a run, and which run nobody is, is told by the time that it is.
type reading struct {
	history.Store
	now func() time.Time
}

// Lease gives no lease that has run out.
func (r reading) Lease(ctx context.Context, executionID string) (history.Lease, error) {
	lease, err := r.Store.Lease(ctx, executionID)
	if !lease.Expires.After(r.now()) {
		lease = history.Lease{}
	}
	return lease, err
}

// Orphans goes by the time that it is.
func (r reading) Orphans(ctx context.Context, _ time.Time, limit int) ([]string, error) {
	return r.Store.Orphans(ctx, r.now(), limit)
}
