package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Survey is Recover with DryRun for the given runs, which it reads no further than needed. It treats subworkflows like other runs, and
// ignores unknown ids. The error is the store's.
func (r *Runner) Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := wait.Joined(ctx, r.ctx)
	defer stop()
	return recoverResult(process.SurveyRuns(ctx, r.process(), executionIDs...))
}

// process is this process as a survey sees it.
func (r *Runner) process() process.Process {
	return process.Process{
		Store: r.store, Runs: r.runs, Library: r.library, Now: r.now, Name: r.lease.Process, MaxDepth: r.opts.MaxDepth,
	}
}
