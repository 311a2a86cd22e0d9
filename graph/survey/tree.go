package survey

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Root returns the run at the root of the tree that a run belongs to.
func Root(ctx context.Context, store history.Store, id string) (string, error) {
	exec, err := store.Execution(ctx, id)
	for err == nil && exec.Parent != "" {
		id = exec.Parent
		exec, err = store.Execution(ctx, id)
	}
	return id, err
}

// Each calls f for every run in a phase, or in any with "".
func Each(ctx context.Context, store history.Store, phase history.Phase, f func(*history.Execution) error) error {
	q := history.ListQuery{Phase: phase, Limit: 100}
	for {
		page, err := store.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if err := f(&page.Executions[i]); err != nil {
				return err
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}
