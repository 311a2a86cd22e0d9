// Package activities holds the port through which the engine performs nodes in process: step, llm_call, tool_call and
// agent_delegate. Executors know nothing of histories; the engine commits the intent before it calls one, and the outcome
// before it continues.
package activities

import (
	"context"
	"time"
)

// Executor performs one attempt of an activity. It may implement Capable, too.
//
// The context ends at Request.Deadline and when the run is cancelled; an executor must stop then. A panic or
// runtime.Goexit (t.FailNow calls it) becomes a failed attempt. After a crash the same attempt may be executed again, with the same
// IdempotencyKey.
type Executor interface {
	Execute(ctx context.Context, req Request) (Result, error)
}

// ExecutorFunc makes a function an Executor.
type ExecutorFunc func(ctx context.Context, req Request) (Result, error)

// Execute calls f.
func (f ExecutorFunc) Execute(ctx context.Context, req Request) (Result, error) { return f(ctx, req) }

// Request describes one attempt.
type Request struct {
	ExecutionID string
	NodeID      string
	// NodeType is "step", "llm_call", "tool_call" or "agent_delegate".
	NodeType string
	// Config is a copy of the node's config as written in the definition; nil for an agent_delegate node.
	Config map[string]any
	// Protocol is "a2a", "mcp" or "sdk" for an agent_delegate node. AgentID, Input and CorrelationID are set for such nodes too.
	Protocol, AgentID string
	// Input is the evaluated input_mapping, a copy.
	Input map[string]any
	// CorrelationID is "<execution id>:delegate:<node id>" (spec: activities, 8). Visits and attempts share it:
	// IdempotencyKey distinguishes them.
	CorrelationID string
	// Metadata is a copy of the node's metadata; may be nil.
	Metadata map[string]any
	// Visit counts the visits of the node in this run, Attempt the attempts within the visit, both from 1.
	Visit, Attempt int
	// RequestedAt is when the attempt was requested, the same whenever it is executed again; zero means now.
	RequestedAt time.Time
	// Deadline is zero if the node has no timeout.
	Deadline time.Time
	// Silence is the longest time without a Heartbeat, 0 for no bound. Then the context ends, and the attempt fails.
	Silence time.Duration
	// IdempotencyKey is the same whenever this attempt is executed again. Pass it on to the services that the executor calls.
	IdempotencyKey string
	// Branch is set inside a parallel branch.
	Branch *Branch
	// Repair is a copy of Failure.Repair of the previous attempt if this attempt is to correct it; nil for any other
	// attempt.
	Repair map[string]any
	// State returns a deep copy of the workflow state as the node sees it.
	State func() map[string]any
	// Heartbeat tells the engine that the attempt is alive; details may be nil. Never nil itself. Nothing of it is recorded.
	// The id of a remote task goes into details as "externalTaskId".
	Heartbeat func(details map[string]any)
}

// Node returns the node of the request.
func (r *Request) Node() Node {
	return Node{ID: r.NodeID, Type: r.NodeType, Config: r.Config, Protocol: r.Protocol, AgentID: r.AgentID}
}

// HeartbeatText is the field of a heartbeat's details for streamed text, such as a model's: the text since the last heartbeat. Clients that
// wait for the run receive it; it is not logged.
const HeartbeatText = "text"

// Time is the time that the expressions of a request see: when it was requested, else now.
func (r *Request) Time(now func() time.Time) time.Time {
	if r.RequestedAt.IsZero() {
		return now()
	}
	return r.RequestedAt
}

// Branch names the parallel branch that a node runs in.
type Branch struct {
	ParallelNodeID, JoinTargetID, Name, EntryNodeID string
}

// Result is the outcome of a successful attempt.
type Result struct {
	// Output is any JSON-like Go value. An object becomes the node's delta; anything else is wrapped as
	// {"value": …}; nil is {}.
	Output any
	// Usage is recorded beside the output: model, tokens, sizes. May be nil.
	Usage map[string]any
	// Partial is true if the output is incomplete, such as an agent's answer at the end of its budget. It is recorded with the usage,
	// as its fields partial and partial_reason, and the run's answers warn of it (AGENT_PARTIAL_ANSWER).
	Partial bool
	// ExternalTaskID is the id of a delegation's task at its agent.
	ExternalTaskID string
}

// Retryable is whether another attempt can help.
type Retryable int

// RetryUnknown leaves the decision to the node's retry policy, as RetrySensible does.
const (
	RetryUnknown Retryable = iota
	RetrySensible
	RetryPointless
)

// Failure is an executor's error for a failed attempt, with a stable code. Any other error counts as a
// failed attempt with code ACTIVITY_FAILED.
type Failure struct {
	// Code is a stable identifier such as LLM_PROVIDER_ERROR; retry policies match on it.
	Code      string
	Message   string
	Retryable Retryable
	// RetryAfter is the least time to wait before the next attempt; 0 leaves it to the policy.
	RetryAfter time.Duration
	// Usage is the usage of the failed attempt (model, tokens), recorded with the error. May be nil.
	Usage map[string]any
	// Data describes the failure for programs, such as the class and the HTTP status of a model's failure (chat.ClassIn). JSON-like; may
	// be nil. It is recorded with the failure if it takes at most 16 KiB, and reaches a catch with "as", as raised data does.
	Data map[string]any
	// Repair, unless nil, asks for one more attempt, which gets it as Request.Repair: the data needed to correct this attempt,
	// such as a model's answer and the errors in it. It is JSON-like, and recorded with the failure, so that a process
	// that claims the run has it too; it may be as large as an output (graph.Options.MaxDocumentBytes).
	//
	// The engine grants one repair per visit of a node, at once unless RetryAfter says otherwise. It counts as one of the
	// node's max_attempts, but is granted even after the last one, and if Retryable is RetryPointless. It is not granted if the
	// node's non_retryable_errors name the code, nor if Repair is not JSON or too large: the failure then counts as one
	// without it. An attempt after a failed repair starts without Repair. Delegations get no repair.
	Repair map[string]any
	Err    error
}

// Error returns the message.
func (f *Failure) Error() string {
	if f.Err != nil && f.Message != "" {
		return f.Message + ": " + f.Err.Error()
	}
	if f.Err != nil {
		return f.Err.Error()
	}
	return f.Message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }
