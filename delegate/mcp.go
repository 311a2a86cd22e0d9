package delegate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Tool names the tool of an MCP server that stands for an agent.
type Tool struct{ Server, Name string }

// CallTool calls a tool with the delegate input and returns its result as a plain value. Failures are
// *activities.Failure with the codes of tool_call.
type CallTool func(ctx context.Context, tool Tool, req activities.Request) (any, error)

// MCP delegates to tools of MCP servers (spec: activities, 11): one call for each delegation, whose result is the
// output. Every failure has code DELEGATE_PROTOCOL_ERROR, with the finer code at the beginning of its text.
type MCP struct {
	agents map[string]Tool
	call   CallTool
}

// NewMCP makes an executor for the agents, keyed by id.
func NewMCP(agents map[string]Tool, call CallTool) MCP { return MCP{agents: agents, call: call} }

// Capabilities reports whether the agent is bound to a tool, names the tool, and names its MCP server for limits.
func (m MCP) Capabilities(n activities.Node) activities.Capabilities {
	tool, ok := m.agents[strings.TrimSpace(n.AgentID)]
	server, name := strings.TrimSpace(tool.Server), strings.TrimSpace(tool.Name)
	can := activities.Capabilities{Targets: m.bound}
	if n.Protocol != "mcp" || server == "" || name == "" {
		can.Missing = activities.MissingTarget
	}
	if ok {
		can.Classes = []string{"mcp:" + server}
		can.Describe = func(activities.Request) map[string]any { return map[string]any{"server": server, "tool": name} }
	}
	return can
}

// bound returns the ids of the agents that are bound to a tool, sorted.
func (m MCP) bound() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.agents)), func(id string) bool {
		tool := m.agents[id]
		return strings.TrimSpace(tool.Server) == "" || strings.TrimSpace(tool.Name) == ""
	})
}

// Execute calls the agent's tool.
func (m MCP) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.Protocol != "mcp" {
		return activities.Result{}, activities.Fail(problem.DelegateProtocolUnsupported, "unsupported delegate protocol %q: this executor supports mcp", req.Protocol)
	}
	id := strings.TrimSpace(req.AgentID)
	tool, ok := m.agents[id]
	if !ok || id == "" {
		return activities.Result{}, activities.Fail(problem.DelegateAgentNotFound, "agent %q is not one of delegateAgents in the manifest", req.AgentID)
	}
	tool.Server, tool.Name = strings.TrimSpace(tool.Server), strings.TrimSpace(tool.Name)
	if tool.Server == "" || tool.Name == "" {
		return activities.Result{}, activities.Fail(problem.DelegateAgentNotFound, "agent %q has no server and tool in the manifest", id)
	}
	output, err := m.call(ctx, tool, req)
	if err != nil {
		return activities.Result{}, toolFailure(id, err)
	}
	return activities.Result{Output: output, ExternalTaskID: TaskID("mcp", req.CorrelationID)}, nil
}

// toolFailure is a delegation's failure for that of its tool. Whether trying again makes sense stays as it is.
func toolFailure(id string, err error) *activities.Failure {
	failure := activities.Fail(problem.DelegateProtocolError, "agent %q", id)
	failure.Err = err
	cause, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		return failure
	}
	if cause.Code == string(problem.MCPServerNotConfigured) {
		return activities.Fail(problem.DelegateAgentNotFound, "agent %q: %s", id, cause.Error())
	}
	failure.Message = fmt.Sprintf("%s: agent %q", cause.Code, id)
	failure.Retryable, failure.RetryAfter = cause.Retryable, cause.RetryAfter
	return failure
}
