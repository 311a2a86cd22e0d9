package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Composite sends each node to the executor of its type or, for agent_delegate nodes, of its protocol, and otherwise to
// Fallback. Without a fallback the attempt fails with COMPOSITE_EXECUTOR_NOT_CONFIGURED or DELEGATE_PROTOCOL_UNSUPPORTED, and
// so do unknown types and protocols in any case. The zero value rejects everything.
type Composite struct {
	// Step, LLMCall and ToolCall perform nodes of these types.
	Step, LLMCall, ToolCall Executor
	// A2A, MCP and SDK perform agent_delegate nodes of these protocols.
	A2A, MCP, SDK Executor
	// Fallback performs the nodes without an executor; usually nil, or a Stub for demonstrations.
	Fallback Executor
	// Setting names, in errors, the option that configures an executor for a node type or protocol; nil names the
	// field above.
	Setting func(kind string) string
}

// Execute passes the request to its executor.
func (c Composite) Execute(ctx context.Context, req Request) (Result, error) {
	return c.executor(req.Node()).Execute(ctx, req)
}

// Capabilities returns the capabilities of the node's executor.
func (c Composite) Capabilities(n Node) Capabilities {
	can := CapabilitiesOf(c.executor(n), n)
	can.Setting = c.setting(n)
	return can
}

// executor returns the executor of a node; without one, an executor that fails.
func (c Composite) executor(n Node) Executor {
	executor, field := c.route(n)
	switch {
	case field == "" && n.Type == agentDelegate:
		return refusal{UnknownProtocol(n.Protocol)}
	case field == "":
		return refusal{Fail(problem.ExecutorNotConfigured, "nodes of type %q are not activities", n.Type)}
	case executor != nil:
		return executor
	case c.Fallback != nil:
		return c.Fallback
	}
	return refusal{NotConfigured(n, c.setting(n))}
}

// route returns the field for a node, and its name; "" for an unknown type or protocol.
func (c Composite) route(n Node) (executor Executor, field string) {
	switch {
	case n.Type == "step":
		return c.Step, "Composite.Step"
	case n.Type == "llm_call":
		return c.LLMCall, "Composite.LLMCall"
	case n.Type == "tool_call":
		return c.ToolCall, "Composite.ToolCall"
	case n.Type != agentDelegate:
	case n.Protocol == "a2a":
		return c.A2A, "Composite.A2A"
	case n.Protocol == "mcp":
		return c.MCP, "Composite.MCP"
	case n.Protocol == "sdk":
		return c.SDK, "Composite.SDK"
	}
	return nil, ""
}

func (c Composite) setting(n Node) string {
	switch _, field := c.route(n); {
	case c.Setting == nil:
		return field
	case n.Type == agentDelegate:
		return c.Setting(n.Protocol)
	}
	return c.Setting(n.Type)
}

const agentDelegate = "agent_delegate"

// UnknownProtocol is the failure of a delegation whose protocol does not exist.
func UnknownProtocol(protocol string) *Failure {
	return Fail(problem.DelegateProtocolUnsupported, "unknown delegate protocol %q; use a2a, mcp or sdk", protocol)
}

// NotConfigured is the failure of a node without an executor. It names the setting that provides one, and the alternative, the
// host.
func NotConfigured(n Node, setting string) *Failure {
	if n.Type != agentDelegate {
		return Fail(problem.ExecutorNotConfigured,
			"no executor configured for %s nodes such as %q: set %s, or run in mode \"host_mediated\" and submit the outcome",
			n.Type, n.ID, setting)
	}
	remedy := "register the agent in a Go program of your own"
	switch {
	case n.Protocol != "a2a" && n.Protocol != "mcp" && n.Protocol != "sdk":
		remedy = "use a2a, mcp or sdk"
	case n.Protocol == "mcp" && setting != "":
		remedy = "name the agent in delegateAgents of the manifest (" + setting + ")"
	case setting != "":
		remedy = "set " + setting
	}
	return Fail(problem.DelegateProtocolUnsupported,
		"no executor configured for delegate protocol %q of node %q: %s, or run in mode \"host_mediated\" and submit the outcome",
		n.Protocol, n.ID, remedy)
}
