package graph

import (
	"cmp"
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Recover takes over runs whose owner is gone and fires due timers. What was in flight is performed again, with the
// same keys; the call does not wait for it. Runs that wait for an executor or a workflow_ref which this Runner lacks are
// left to others, without a write, and so are runs that wait for a host, a person or a signal. Limit bounds how many runs
// are looked at; those that were looked at last come last. With DryRun it writes nothing and says what it would do.
func (r *Runner) Recover(ctx context.Context, req RecoverRequest) (*RecoverResult, error) {
	enter := r.enterToWrite
	if req.DryRun {
		enter = r.enter
	}
	if err := enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := wait.Joined(ctx, r.ctx)
	defer stop()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit %d is negative", req.Limit)
	}
	req.Limit = cmp.Or(req.Limit, 100)
	if req.DryRun {
		return process.SurveyAll(ctx, r.process(), req.Limit)
	}
	ids, err := r.search.TakeOrphans(ctx, req.Limit, true)
	if err != nil && ids == nil {
		return nil, err
	}
	res := &RecoverResult{ExecutionIDs: ids}
	if err != nil {
		return res, err
	}
	due, err := r.search.DueTimers(ctx, r.now(), req.Limit)
	if err != nil {
		return res, err
	}
	for _, t := range due {
		r.fire(process.Timer{ExecutionID: t.ExecutionID})
	}
	return res, nil
}
