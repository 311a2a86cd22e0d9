package graph

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
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
	defer r.p.Leave()
	if strings.TrimSpace(req.ExecutionID) == "" {
		return nil, problem.New(problem.CancelValidationError, "execution id is missing")
	}
	x := r.p.Runs.Hold(req.ExecutionID)
	defer r.p.Runs.Drop(x)
	in := machine.Cancel{Reason: problem.Excerpt(strings.TrimSpace(req.Reason), problem.MaxText), KeepTasks: req.KeepTasks}
	continues, err := r.p.Cancel(ctx, x, in)
	if err != nil {
		return nil, admit.UnreadableAs(admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID), problem.CancelValidationError)
	}
	run, err := r.p.View(work.Detached(ctx), x)
	if continues {
		view.CancelGoesOn(run)
	}
	return run, err
}
