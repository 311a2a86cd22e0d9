package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/replay"
	"github.com/workflows-engine/workflows-engine/history"
)

// Inspect checks what only the machine can tell of a run, and changes nothing; see replay.Inspect. Together with a store that is a
// history.Verifier it makes up a check of a whole database.
func Inspect(ctx context.Context, store history.Store, executionID string) ([]history.Finding, error) {
	return replay.Inspect(ctx, store, executionID)
}
