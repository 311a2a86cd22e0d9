package conformance

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph"
)

// Surface is an interface of the engine that parity vectors drive.
type Surface interface {
	// Call performs one step. An error means that the surface does not work; a refusal by the engine is an Answer.
	Call(ctx context.Context, c Call) (Answer, error)
	Close() error
}

// SurfaceFactory opens a Surface for one vector.
type SurfaceFactory struct {
	// Name is used in reports.
	Name string
	// Open returns a surface over a runner. The caller closes the runner after the surface. No other surface uses the runner or its
	// store.
	Open func(ctx context.Context, runner *graph.Runner) (Surface, error)
}

// Answer is a surface's answer to a call.
type Answer struct {
	// IsError is set if the surface reported a failure; Code is its code.
	IsError bool
	Code    string
	// Fields holds a successful answer, with the field names of the protocol's tools. Other fields are ignored.
	Fields map[string]any
}
