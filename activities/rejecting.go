package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Rejecting fails every attempt with CONFORMANCE_ACTIVITY_PORT_INVOKED. It proves that a replay calls no executor.
type Rejecting struct{}

// Execute always fails.
func (Rejecting) Execute(_ context.Context, req Request) (Result, error) {
	return Result{}, Fail(problem.ActivityPortInvoked, "an executor was called for node %q where none may be called", req.NodeID)
}

// Immediate is always true.
func (Rejecting) Immediate(Request) bool { return true }

var _ Immediate = Rejecting{}
