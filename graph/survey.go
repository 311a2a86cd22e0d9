package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Survey is Recover with DryRun for the given runs, which it reads no further than needed. It treats subworkflows like other runs, and
// ignores unknown ids. The error is the store's.
func (r *Runner) Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	ctx, stop := wait.Joined(ctx, r.p.Context)
	defer stop()
	return recoverResult(r.p.SurveyRuns(ctx, executionIDs...))
}
