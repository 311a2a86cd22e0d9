package transfer

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Verify checks a run, or everything if executionID is "": what the store can tell, and what Inspect finds. What a store cannot check
// of itself is left out, and steps are checked only with a check. A run whose records cannot be read is reported and passed over; any other error ends the check.
func Verify(ctx context.Context, store history.Store, executionID string, repair bool, check CheckSteps, report func(history.Finding)) (counts history.Verified, err error) {
	reported, tell := false, report
	report = func(f history.Finding) { reported = true; tell(f) }
	if verifier, ok := history.As[history.Verifier](store); ok {
		if counts, err = verifier.Verify(ctx, executionID, repair, report); err != nil {
			return counts, err
		}
	}
	inspect := func(id string) error {
		findings, err := Inspect(ctx, store, id, check)
		for _, f := range findings {
			report(f)
		}
		if errors.Is(err, problem.HistoryCorrupt) || errors.Is(err, problem.HistoryNewer) || errors.Is(err, problem.ExecutionNotFound) && (reported || executionID == "") {
			return nil // it has been reported, or deleted meanwhile
		}
		return err
	}
	if executionID != "" {
		return counts, inspect(executionID)
	}
	return counts, history.Each(ctx, store, "", func(e *history.Execution) error { return inspect(e.ID) })
}
