package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/history"
)

// Inspect compares a run with its definition and changes nothing. Runner.Verify checks more.
func Inspect(ctx context.Context, store history.Store, executionID string) ([]history.Finding, error) {
	return transfer.Inspect(ctx, store, executionID, nil)
}

// Verify checks a run, or all if executionID is ""; see Verifier.
func (r *Runner) Verify(ctx context.Context, executionID string, repair bool, report func(history.Finding)) (counts history.Verified, err error) {
	enter := r.enter
	if repair {
		enter = r.enterToWrite
	}
	if err := enter(ctx); err != nil {
		return counts, err
	}
	defer r.p.Leave()
	return transfer.Verify(ctx, r.p.Store, executionID, repair, r.opts.CheckSteps, report)
}
