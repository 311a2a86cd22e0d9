package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/history"
)

// List returns a page of runs with their Lineage, last changed first. Errors: VALIDATION_ERROR for a limit outside 0 to 100 and an unknown
// phase; INVALID_LIST_CURSOR.
func (r *Runner) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.ListPage{}, err
	}
	defer r.p.Leave()
	if err := admit.List(q); err != nil {
		return history.ListPage{}, err
	}
	page, err := r.p.Store.List(ctx, q)
	if err != nil {
		return history.ListPage{}, err
	}
	runs := make([]*history.Execution, len(page.Executions))
	for i := range runs {
		runs[i] = &page.Executions[i]
	}
	return page, history.AddLineage(ctx, r.p.Store, runs...)
}
