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

// refusal fails every call, at once.
type refusal struct{ err error }

func (r refusal) Delegate(context.Context, Request) (Result, error)    { return Result{}, r.err }
func (r refusal) Immediate(Request) bool                               { return true }
func (r refusal) Performs(string) bool                                 { return false }
func (r refusal) PerformsAgent(string, string) bool                    { return false }
func (r refusal) HasTask(Request) bool                                 { return false }
func (r refusal) Send(context.Context, Request) (Task, error)          { return Task{}, r.err }
func (r refusal) Poll(context.Context, Request, TaskRef) (Task, error) { return Task{}, r.err }
func (r refusal) Cancel(context.Context, Request, TaskRef) error       { return r.err }
func (r refusal) Answer(context.Context, Request, TaskRef, map[string]any) (Task, error) {
	return Task{}, r.err
}

var _ Immediate = Rejecting{}
