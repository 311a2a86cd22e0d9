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

// Cancel ends a run and its subworkflows; what executors do for them is stopped and not recorded, and agents are asked to
// end their tasks unless these are kept. Cancelling a cancelled run changes nothing and answers with the first reason.
// A run whose definition asks for it is rolled back first: then it goes on (Run.Rollbacks) until it is cancelled, and another Cancel ends
// it at once. Many subworkflows take longer than the call: a warning CANCEL_GOES_ON then says so. They take no input any more.
// Errors: EXECUTION_NOT_FOUND, CANCEL_NOT_ALLOWED for a run that has
// completed or failed, CANCEL_VALIDATION_ERROR for arguments or a run that cannot be read.
func (r *Runner) Cancel(ctx context.Context, req CancelRequest) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if strings.TrimSpace(req.ExecutionID) == "" {
		return nil, problem.New(problem.CancelValidationError, "the execution id is missing")
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
