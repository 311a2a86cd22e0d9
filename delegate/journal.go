package delegate

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
)

// Journaled is implemented by executors of delegations that go on after a crash where they stood; see activities.Journaled.
type Journaled interface {
	Executor
	// Journals reports whether Work serves a request; Delegate serves the others. It must not block.
	Journals(req Request) bool
	Work(ctx context.Context, req Request, j activities.Journal) (activities.End, error)
}
