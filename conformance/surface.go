package conformance

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph"
)

// Surface is a door of the engine through which the steps of parity vectors are driven.
type Surface interface {
	// Call performs one step. The error is for a door that does not work; what the engine refuses is an Answer.
	Call(ctx context.Context, c Call) (Answer, error)
	Close() error
}

// SurfaceFactory opens a Surface for one vector.
type SurfaceFactory struct {
	// Name is used in reports.
	Name string
	// Open gives a surface over a runner, which the caller closes after the surface. The runner belongs to this surface
	// alone, as does its store.
	Open func(ctx context.Context, runner *graph.Runner) (Surface, error)
}

// Answer is what a surface said to a call.
type Answer struct {
	// IsError says that the surface reported a failure, Code which one.
	IsError bool
	Code    string
	// Fields are the members of a successful answer as the protocol's tools name them; further ones are not looked at.
	Fields map[string]any
}
