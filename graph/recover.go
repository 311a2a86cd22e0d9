package graph

import (
	"cmp"
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// RecoverResult lists the runs that Recover or Survey found.
type RecoverResult struct {
	// ExecutionIDs were claimed, or would be, the oldest first.
	ExecutionIDs []string
	// Due are the timers that would fire, the earliest of each run that is not claimed anyway (Survey and DryRun only).
	Due []history.Timer
	// Left are the runs that would be left to other processes because this one lacks an executor (Survey and DryRun only).
	Left []LeftRun
	// Elsewhere are the runs that another process owns (DryRun only).
	Elsewhere []OwnedRun
	// Roots holds, for each subworkflow above that is not a root itself, the ancestor to drive in order to continue it (DryRun only).
	Roots map[string]string
}

// Root returns the ancestor to drive in order to continue a run above: the highest run that waits for it.
func (r *RecoverResult) Root(executionID string) string {
	return cmp.Or(r.Roots[executionID], executionID)
}

// LeftRun is an orphaned run that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is the missing executor, nil if the run cannot be loaded (Err).
	Lack *view.Lack
	// Err is why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// OwnedRun is a run that another process with a live lease owns.
type OwnedRun struct {
	ExecutionID string
	Owner       history.Owner
}

func recoverResult(s *process.SurveyResult, err error) (*RecoverResult, error) {
	if s == nil {
		return nil, err
	}
	r := &RecoverResult{ExecutionIDs: s.ExecutionIDs, Due: s.Due, Roots: s.Roots}
	for _, l := range s.Left {
		r.Left = append(r.Left, LeftRun(l))
	}
	for _, o := range s.Elsewhere {
		r.Elsewhere = append(r.Elsewhere, OwnedRun(o))
	}
	return r, err
}

// Recover claims orphaned runs and fires due timers. Attempts of their dead owners are repeated with the same keys; the call does not wait
// for them. Runs that need an executor or workflow_ref that this Runner lacks are left to other processes, without a write, as are runs that
// wait for a host, a person or a signal. Limit is the largest number of runs to check; runs checked before come last. With DryRun, Recover
// changes nothing and returns the runs that it would claim.
func (r *Runner) Recover(ctx context.Context, req RecoverRequest) (*RecoverResult, error) {
	enter := r.enterToWrite
	if req.DryRun {
		enter = r.enter
	}
	if err := enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	ctx, stop := wait.Joined(ctx, r.p.Context)
	defer stop()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit must not be negative, found %d", req.Limit)
	}
	req.Limit = cmp.Or(req.Limit, 100)
	if req.DryRun {
		return recoverResult(r.p.SurveyAll(ctx, req.Limit, !req.OmitElsewhere))
	}
	return recoverResult(r.p.Recover(ctx, req.Limit))
}
