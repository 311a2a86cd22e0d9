package delegate

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Composite sends each delegation to the executor of its protocol, or to Fallback if there is none. Without a fallback,
// and for protocols outside the three in any case, the delegation fails with DELEGATE_PROTOCOL_UNSUPPORTED. The zero
// value refuses everything.
type Composite struct {
	A2A, MCP, SDK Executor
	// Fallback serves the protocols that have no executor of their own; usually nil, or a Mock for demonstrations.
	Fallback Executor
}

// Delegate hands the request on.
func (c Composite) Delegate(ctx context.Context, req Request) (Result, error) {
	executor, known := c.route(req.Protocol)
	switch {
	case !known:
		return Result{}, activities.Fail(problem.DelegateProtocolUnsupported, "delegate protocol %q is not known; use a2a, mcp or sdk", req.Protocol)
	case executor == nil:
		return Result{}, NotConfigured(req.Protocol, req.NodeID)
	}
	return executor.Delegate(ctx, req)
}

// settings name what an operator sets, so that a protocol is spoken.
var settings = map[string]string{
	"a2a": "set WORKFLOW_ENGINE_A2A_CONFIG",
	"mcp": "name the agent in delegateAgents of the manifest (WORKFLOW_ENGINE_MCP_CONFIG)",
	"sdk": "register the agent in a Go program of your own",
}

// Setting names what an operator sets so that a protocol is spoken, "" where that takes a program of one's own.
func Setting(protocol string) string {
	switch protocol {
	case "a2a":
		return "WORKFLOW_ENGINE_A2A_CONFIG"
	case "mcp":
		return "WORKFLOW_ENGINE_MCP_CONFIG"
	default:
		return ""
	}
}

// NotConfigured is the failure of a delegation whose protocol nothing here speaks. It names the setting that changes this,
// and the other way out, the host.
func NotConfigured(protocol, nodeID string) *activities.Failure {
	setting, known := settings[protocol]
	if !known {
		setting = "use a2a, mcp or sdk"
	}
	return activities.Fail(problem.DelegateProtocolUnsupported,
		"nothing is configured here that speaks delegate protocol %q, so %q cannot run in process; %s, or run with activity_execution_mode \"host_mediated\" and submit the outcome",
		protocol, nodeID, setting)
}

// Immediate reports whether the executor that would get the request answers at once; a refusal does.
func (c Composite) Immediate(req Request) bool {
	executor, _ := c.route(req.Protocol)
	if executor == nil {
		return true
	}
	immediate, ok := executor.(Immediate)
	return ok && immediate.Immediate(req)
}

// Performs reports whether an executor, or the fallback, serves a protocol.
func (c Composite) Performs(protocol string) bool {
	executor, _ := c.route(protocol)
	return executor != nil
}

// PerformsAgent reports whether the executor that serves the protocol serves the agent.
func (c Composite) PerformsAgent(protocol, agentID string) bool {
	executor, _ := c.route(protocol)
	if agents, ok := executor.(AgentSelective); ok {
		return agents.PerformsAgent(protocol, agentID)
	}
	return executor != nil
}

// HasTask reports whether the executor that would get the request works with tasks.
func (c Composite) HasTask(req Request) bool {
	_, ok := c.tasks(req)
	return ok
}

// Send hands the task over by the executor of its protocol.
func (c Composite) Send(ctx context.Context, req Request) (Task, error) {
	tasks, ok := c.tasks(req)
	if !ok {
		return Task{}, c.noTasks(req)
	}
	return tasks.Send(ctx, req)
}

// Poll looks at the task by the executor of its protocol.
func (c Composite) Poll(ctx context.Context, req Request, task TaskRef) (Task, error) {
	tasks, ok := c.tasks(req)
	if !ok {
		return Task{}, c.noTasks(req)
	}
	return tasks.Poll(ctx, req, task)
}

// Answer answers the agent by the executor of its protocol.
func (c Composite) Answer(ctx context.Context, req Request, task TaskRef, answer map[string]any) (Task, error) {
	tasks, ok := c.tasks(req)
	if !ok {
		return Task{}, c.noTasks(req)
	}
	return tasks.Answer(ctx, req, task, answer)
}

// Cancel tells the agent by the executor of its protocol.
func (c Composite) Cancel(ctx context.Context, req Request, task TaskRef) error {
	tasks, ok := c.tasks(req)
	if !ok {
		return c.noTasks(req)
	}
	return tasks.Cancel(ctx, req, task)
}

func (c Composite) tasks(req Request) (Tasks, bool) {
	executor, _ := c.route(req.Protocol)
	tasks, ok := executor.(Tasks)
	return tasks, ok && tasks.HasTask(req)
}

// noTasks is the failure of a recorded task for which nothing is configured here.
func (c Composite) noTasks(req Request) error {
	return activities.Fail(problem.DelegateProtocolUnsupported,
		"what is configured for protocol %s does not serve tasks of agent %q", req.Protocol, req.AgentID)
}

// route gives the executor for a protocol, nil if none is configured; known is false for protocols outside the three.
func (c Composite) route(protocol string) (executor Executor, known bool) {
	switch protocol {
	case "a2a":
		executor = c.A2A
	case "mcp":
		executor = c.MCP
	case "sdk":
		executor = c.SDK
	default:
		return nil, false
	}
	if executor == nil {
		executor = c.Fallback
	}
	return executor, true
}

var (
	_ Immediate      = Composite{}
	_ Selective      = Composite{}
	_ AgentSelective = Composite{}
	_ Tasks          = Composite{}
)
