package delegate

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// Composite sends each delegation to the executor of its protocol, or to Fallback if there is none. Without a fallback,
// and for protocols outside the three in any case, the delegation fails with DELEGATE_PROTOCOL_UNSUPPORTED. The zero
// value refuses everything.
type Composite struct {
	A2A, MCP, SDK Executor
	// Fallback serves the protocols that have no executor of their own; usually nil, or a Mock for demonstrations.
	Fallback Executor
	// Setting names, in errors, what an operator sets so that a protocol is supported, "" where that takes a Go program; nil names
	// the member above.
	Setting func(protocol string) string
}

// Delegate hands the request on.
func (c Composite) Delegate(ctx context.Context, req Request) (Result, error) {
	return c.executor(req.Protocol, req.NodeID).Delegate(ctx, req)
}

// Immediate reports whether the executor that would get the request answers at once; a refusal does.
func (c Composite) Immediate(req Request) bool {
	return port.Immediate(c.executor(req.Protocol, req.NodeID), req)
}

// Performs reports whether an executor, or the fallback, serves a protocol.
func (c Composite) Performs(protocol string) bool {
	return port.Performs(c.executor(protocol, ""), protocol)
}

// PerformsAgent reports whether the executor that serves the protocol serves the agent.
func (c Composite) PerformsAgent(protocol, agentID string) bool {
	return performsAgent(c.executor(protocol, ""), protocol, agentID)
}

// Classes returns what the executor that serves the protocol says.
func (c Composite) Classes(protocol, agentID string) []string {
	return classes(c.executor(protocol, ""), protocol, agentID)
}

// Describe returns what the executor that would get the request says.
func (c Composite) Describe(req Request) map[string]any {
	return port.Describe(c.executor(req.Protocol, req.NodeID), req)
}

// Journals reports whether the executor that would get the request records its steps.
func (c Composite) Journals(req Request) bool {
	return journals(c.executor(req.Protocol, req.NodeID), req)
}

// Work hands a request on whose steps are recorded.
func (c Composite) Work(ctx context.Context, req Request, j activities.Journal) (activities.End, error) {
	return work(ctx, c.executor(req.Protocol, req.NodeID), req, j)
}

// HasTask reports whether the executor that would get the request works with tasks.
func (c Composite) HasTask(req Request) bool { return c.tasks(req).HasTask(req) }

// Send hands the task over by the executor of its protocol.
func (c Composite) Send(ctx context.Context, req Request) (Task, error) {
	return c.tasks(req).Send(ctx, req)
}

// Poll looks at the task by the executor of its protocol.
func (c Composite) Poll(ctx context.Context, req Request, task TaskRef) (Task, error) {
	return c.tasks(req).Poll(ctx, req, task)
}

// Answer answers the agent by the executor of its protocol.
func (c Composite) Answer(ctx context.Context, req Request, task TaskRef, answer map[string]any) (Task, error) {
	return c.tasks(req).Answer(ctx, req, task, answer)
}

// Cancel ends the task by the executor of its protocol.
func (c Composite) Cancel(ctx context.Context, req Request, task TaskRef) error {
	return c.tasks(req).Cancel(ctx, req, task)
}

func (c Composite) tasks(req Request) Tasks {
	return tasksOf(c.executor(req.Protocol, req.NodeID), req)
}

// executor returns the executor for a protocol, which is one that refuses if none is configured.
func (c Composite) executor(protocol, nodeID string) Executor {
	routes := port.Routes[Executor]{{Kind: "a2a", Executor: c.A2A}, {Kind: "mcp", Executor: c.MCP}, {Kind: "sdk", Executor: c.SDK}}
	executor, known := routes.Find(protocol, c.Fallback)
	switch {
	case !known:
		return refusal{unknownProtocol(protocol)}
	case executor == nil:
		return refusal{NotConfigured(protocol, nodeID, c.SettingOf(protocol))}
	}
	return executor
}

func unknownProtocol(protocol string) *activities.Failure {
	return activities.Fail(problem.DelegateProtocolUnsupported, "unknown delegate protocol %q; use a2a, mcp or sdk", protocol)
}

// SettingOf names what is set so that a protocol is supported, "" where that takes a Go program.
func (c Composite) SettingOf(protocol string) string {
	if c.Setting != nil {
		return c.Setting(protocol)
	}
	return map[string]string{"a2a": "Composite.A2A", "mcp": "Composite.MCP", "sdk": "Composite.SDK"}[protocol]
}

// NotConfigured is the failure of a delegation for whose protocol no executor is configured. It names the setting that changes
// this, and the other way out, the host.
func NotConfigured(protocol, nodeID, setting string) *activities.Failure {
	remedy := "register the agent in a Go program of your own"
	switch {
	case protocol != "a2a" && protocol != "mcp" && protocol != "sdk":
		remedy = "use a2a, mcp or sdk"
	case protocol == "mcp" && setting != "":
		remedy = "name the agent in delegateAgents of the manifest (" + setting + ")"
	case setting != "":
		remedy = "set " + setting
	}
	return activities.Fail(problem.DelegateProtocolUnsupported,
		"no executor configured for delegate protocol %q of node %q: %s, or run in mode \"host_mediated\" and submit the outcome",
		protocol, nodeID, remedy)
}

// performsAgent reports whether an executor serves an agent, as one does that names no agents.
func performsAgent(executor Executor, protocol, agentID string) bool {
	s, ok := executor.(AgentSelective)
	return !ok || s.PerformsAgent(protocol, agentID)
}

// classes returns the classes that an executor names, if it names any.
func classes(executor Executor, protocol, agentID string) []string {
	if c, ok := executor.(Classified); ok {
		return c.Classes(protocol, agentID)
	}
	return nil
}

// journals reports whether an executor records the steps of a request.
func journals(executor Executor, req Request) bool {
	j, ok := executor.(Journaled)
	return ok && j.Journals(req)
}

// work hands a request to an executor that records its steps.
func work(ctx context.Context, executor Executor, req Request, j activities.Journal) (activities.End, error) {
	if w, ok := executor.(Journaled); ok {
		return w.Work(ctx, req, j)
	}
	return activities.End{}, activities.Fail(problem.ExecutorUnsupportedNode, "the executor for node %q records no steps", req.NodeID)
}

// tasksOf returns an executor as one that works with tasks, which refuses if it does not serve the request in this way.
func tasksOf(executor Executor, req Request) Tasks {
	if tasks, ok := executor.(Tasks); ok && tasks.HasTask(req) {
		return tasks
	}
	return refusal{activities.Fail(problem.DelegateProtocolUnsupported,
		"the executor for protocol %s does not serve tasks of agent %q", req.Protocol, req.AgentID)}
}

var (
	_ Immediate      = Composite{}
	_ Selective      = Composite{}
	_ AgentSelective = Composite{}
	_ Classified     = Composite{}
	_ Journaled      = Composite{}
	_ Describer      = Composite{}
	_ Tasks          = Composite{}
)
