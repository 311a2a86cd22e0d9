package graph

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Cancel cancels a run and its subworkflows. Executors are stopped and their outcomes not recorded; agents are asked to cancel their tasks,
// unless KeepTasks is set. Cancelling a cancelled run returns the first reason. A run whose definition requires it is rolled back first and
// stays active (Run.Rollbacks); another Cancel ends it at once. If many subworkflows take longer than the call, the result has the warning
// CANCEL_GOES_ON; they accept no input meanwhile.
//
// Errors: EXECUTION_NOT_FOUND; CANCEL_NOT_ALLOWED for a completed or failed run; CANCEL_VALIDATION_ERROR for invalid arguments or an
// unreadable run.
func (r *Runner) Cancel(ctx context.Context, req CancelRequest) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if strings.TrimSpace(req.ExecutionID) == "" {
		return nil, problem.New(problem.CancelValidationError, "execution id is missing")
	}
	x := r.runs.Hold(req.ExecutionID)
	defer r.runs.Drop(x)
	in := machine.Cancel{Reason: problem.Excerpt(strings.TrimSpace(req.Reason), problem.MaxText), KeepTasks: req.KeepTasks}
	var goesOn atomic.Bool
	ctx = context.WithValue(ctx, cancelsKey{}, &goesOn)
	err := r.first(ctx, x, func(w *run.Work) error { return x.Cancel(ctx, in, w) })
	if err != nil {
		return nil, admit.UnreadableAs(admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID), problem.CancelValidationError)
	}
	run, err := r.standings.View(detached(ctx), x)
	if goesOn.Load() {
		view.CancelGoesOn(run)
	}
	return run, err
}
