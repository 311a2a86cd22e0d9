package process

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

// TreeRoot returns the run from which to go on with a run: the highest one above it that waits for it. A subworkflow that is rolled back may
// outlive the wait for it, and the run that began it.
func TreeRoot(ctx context.Context, store history.Store, id string) (string, error) {
	exec, err := store.Execution(ctx, id)
	for err == nil && exec.Parent != "" {
		parent, failed := store.Execution(ctx, exec.Parent)
		if failed != nil {
			return exec.Parent, failed
		}
		if !awaits(&parent, exec.ID) {
			break
		}
		id, exec = parent.ID, parent
	}
	return id, err
}

// awaits reports whether a run waits for the end of a subworkflow.
func awaits(e *history.Execution, child string) bool {
	return slices.ContainsFunc(e.Waits, func(w history.Wait) bool { return w.ChildExecutionID == child })
}
