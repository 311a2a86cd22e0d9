package delegate

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Rejecting fails every delegation with CONFORMANCE_DELEGATE_PORT_INVOKED. It proves that a replay calls no agent.
type Rejecting struct{}

// Delegate always fails.
func (Rejecting) Delegate(_ context.Context, req Request) (Result, error) {
	return Result{}, activities.Fail(problem.DelegatePortInvoked, "a delegate executor was called for node %q where none may be called", req.NodeID)
}

// Immediate is always true.
func (Rejecting) Immediate(Request) bool { return true }

var _ Immediate = Rejecting{}
