// Package delegate holds the port through which the engine hands agent_delegate nodes to other agents in process,
// and its implementations.
package delegate

import (
	"context"
	"time"
)

// Executor hands one task to an agent and waits for its outcome. The rules of activities.Executor about contexts,
// panics and repetition apply. Failures are *activities.Failure.
type Executor interface {
	Delegate(ctx context.Context, req Request) (Result, error)
}

// ExecutorFunc makes a function an Executor.
type ExecutorFunc func(ctx context.Context, req Request) (Result, error)

// Delegate calls f.
func (f ExecutorFunc) Delegate(ctx context.Context, req Request) (Result, error) { return f(ctx, req) }

// Immediate is implemented by executors that answer at once, such as the mock; see activities.Immediate.
type Immediate interface {
	Executor
	// Immediate reports whether this request is answered at once.
	Immediate(req Request) bool
}

// Selective is implemented by executors that serve some protocols only, such as Composite, for the same reason as
// activities.Selective.
type Selective interface {
	Executor
	// Performs reports whether delegations of this protocol are performed: "a2a", "mcp" or "sdk".
	Performs(protocol string) bool
}

// AgentSelective is implemented by executors that serve some agents of a protocol only, for the same reason as
// activities.NodeSelective.
type AgentSelective interface {
	Executor
	// PerformsAgent reports whether delegations of this protocol to this agent are performed.
	PerformsAgent(protocol, agentID string) bool
}

// Classified is implemented by executors that know more about what a delegation takes than its node says; see
// activities.Classified.
type Classified interface {
	Executor
	// Classes returns the classes of delegations to an agent besides the node type and the agent, such as "mcp:<server>".
	Classes(protocol, agentID string) []string
}

// Describer is implemented by executors that can say where they send a request; see activities.Describer. The input is recorded
// anyway.
type Describer interface {
	Executor
	Describe(req Request) map[string]any
}

// Request describes one attempt of a delegation.
type Request struct {
	ExecutionID string
	NodeID      string
	AgentID     string
	// Protocol is "a2a", "mcp" or "sdk".
	Protocol string
	// Input is the evaluated input_mapping, a copy of its own.
	Input map[string]any
	// Metadata is a copy of the node's metadata; may be nil.
	Metadata map[string]any
	// CorrelationID is "<execution id>:delegate:<node id>" (spec: activities, 8). It does not tell visits or attempts
	// apart: IdempotencyKey does.
	CorrelationID  string
	IdempotencyKey string
	Visit, Attempt int
	Deadline       time.Time
	// State returns a deep copy of the workflow state as the node sees it.
	State func() map[string]any
	// Heartbeat tells the engine that the attempt is alive; a remote task's id goes into details as "externalTaskId".
	Heartbeat func(details map[string]any)
}

// Result is the outcome of a successful delegation.
type Result struct {
	// Output is the agent's result; an object becomes the node's delta, anything else is wrapped as {"value": …}.
	Output any
	// ExternalTaskID is the task's id at the agent.
	ExternalTaskID string
	Usage          map[string]any
}
