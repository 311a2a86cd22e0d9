package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/history"
)

// WithActor returns a context that says who makes a call. Start, Fork, Import, Resume, Signal, Cancel and SubmitActivity record that with
// what they write, and verify nothing of it. Long texts are cut, characters that cannot be printed are escaped. What the engine
// does by itself afterwards has no actor, and executors' contexts have none.
func WithActor(ctx context.Context, a history.Actor) context.Context { return run.WithActor(ctx, a) }
