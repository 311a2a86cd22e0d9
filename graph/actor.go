package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/history"
)

// WithActor returns a context with the actor of a call. Start, Fork, Import, Resume, Signal, Cancel and SubmitActivity record it unverified.
// Long texts are cut, unprintable characters escaped. Later work of the engine has no actor, and neither have the contexts of executors.
func WithActor(ctx context.Context, a history.Actor) context.Context { return run.WithActor(ctx, a) }
