package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Rejecting fails every attempt with CONFORMANCE_ACTIVITY_PORT_INVOKED, of a delegation with CONFORMANCE_DELEGATE_PORT_INVOKED.
// It proves that a replay calls no executor.
type Rejecting struct{}

// Execute always fails.
func (Rejecting) Execute(_ context.Context, req Request) (Result, error) {
	if req.NodeType == agentDelegate {
		return Result{}, Fail(problem.DelegatePortInvoked, "a delegate executor was called for node %q where none may be called", req.NodeID)
	}
	return Result{}, Fail(problem.ActivityPortInvoked, "an executor was called for node %q where none may be called", req.NodeID)
}

// Capabilities reports that every node is answered at once.
func (Rejecting) Capabilities(Node) Capabilities { return Capabilities{Immediate: true} }
