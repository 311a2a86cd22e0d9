package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/standing"
	"github.com/workflows-engine/workflows-engine/history"
)

// Status says where a run stands; it changes nothing but fires timers that are due, unless the Runner is ReadOnly. The error is EXECUTION_NOT_FOUND
// or the store's.
func (r *Runner) Status(ctx context.Context, req StatusRequest) (*Run, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	x := r.runs.Hold(req.ExecutionID)
	defer r.runs.Drop(x)
	var s standing.Standing
	err := r.standings.Look(ctx, x, false, &s)
	if err == nil && req.Wait != nil && r.limit(*req.Wait) > 0 && (req.Since == 0 || s.Seq <= req.Since) {
		wait := *req.Wait
		wait.Limit = r.limit(wait)
		if req.Wait.Applied != nil {
			req.Wait.Applied()
		}
		was, waiting := s, r.waiting(x)
		waiting.AnyChange = req.Since > 0
		waiting.Until = func(now *standing.Standing) bool {
			return now.Status != was.Status || req.Since > 0 && now.Sum != was.Sum
		}
		err = waiting.For(ctx, wait)
	}
	if err != nil {
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	v, err := r.standings.View(detached(ctx), x)
	if err != nil {
		return nil, err
	}
	of := history.Execution{ID: v.ExecutionID, Phase: history.Phase(v.Status), ForkedFrom: v.ForkedFrom}
	err = history.AddLineage(detached(ctx), r.store, &of)
	v.Lineage = of.Lineage
	return v, err
}
