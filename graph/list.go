package graph

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// List returns a page of runs, last changed first. A limit beyond 100 and an unknown phase are VALIDATION_ERROR, a cursor that
// no list call made INVALID_LIST_CURSOR.
func (r *Runner) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := r.enter(); err != nil {
		return history.ListPage{}, err
	}
	defer r.tasks.Done()
	if _, err := q.PageSize(); err != nil {
		return history.ListPage{}, err
	}
	if q.Phase != "" && !slices.Contains(history.Phases(), q.Phase) {
		return history.ListPage{}, problem.New(problem.ValidationError, "phase %q is unknown", string(q.Phase))
	}
	return r.store.List(ctx, q)
}
