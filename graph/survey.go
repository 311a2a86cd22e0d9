package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// RecoverResult lists what Recover or Survey found. Its fields: go doc graph/survey Result.
type RecoverResult = process.SurveyResult

// LeftRun is an orphaned run that this process leaves to others. Its fields: go doc graph/survey LeftRun.
type LeftRun = process.LeftRun

// OwnedRun is a run that another process with a live lease owns. Its fields: go doc graph/survey OwnedRun.
type OwnedRun = process.OwnedRun

// Survey is Recover with DryRun for some runs alone, of which it reads no more than it needs. Subworkflows are runs of their
// own here, and an id that no run has is passed over. The error is the store's.
func (r *Runner) Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := wait.Joined(ctx, r.ctx)
	defer stop()
	return process.SurveyRuns(ctx, r.process(), executionIDs...)
}

// process is this process as a survey sees it.
func (r *Runner) process() process.Process {
	return process.Process{
		Store: r.store, Runs: r.runs, Library: r.library, Now: r.now, Name: r.lease.Process, MaxDepth: r.opts.MaxDepth,
	}
}
