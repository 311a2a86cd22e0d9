package execution

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/graph/runview"
)

// Ending returns how the run ended: from the machine that ended it, or from the last records.
func (x *Run) Ending(ctx context.Context) (runview.Ending, error) {
	if x.m == nil {
		return recorded.Ending(ctx, x.env.Store, x.exec)
	}
	return runview.EndingOf(x.m, x.exec.DefinitionHash), nil
}
