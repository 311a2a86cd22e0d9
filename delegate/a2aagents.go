package delegate

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// A2AAgents sends each delegation of protocol a2a to the endpoint of its agent.
type A2AAgents struct {
	// Default serves the agents that Agents does not name; nil refuses them with DELEGATE_AGENT_NOT_FOUND.
	Default Tasks
	// Agents serves agents by id.
	Agents map[string]Tasks
}

// PerformsAgent reports whether there is an endpoint for the agent.
func (a *A2AAgents) PerformsAgent(protocol, agentID string) bool {
	return protocol == "a2a" && (a.Default != nil || a.Agents[strings.TrimSpace(agentID)] != nil)
}

// HasTask is always true.
func (a *A2AAgents) HasTask(Request) bool { return true }

// Delegate hands the request on.
func (a *A2AAgents) Delegate(ctx context.Context, req Request) (Result, error) {
	return a.of(req).Delegate(ctx, req)
}

// Send hands the task to its agent.
func (a *A2AAgents) Send(ctx context.Context, req Request) (Task, error) {
	return a.of(req).Send(ctx, req)
}

// Poll asks the task's agent.
func (a *A2AAgents) Poll(ctx context.Context, req Request, ref TaskRef) (Task, error) {
	return a.of(req).Poll(ctx, req, ref)
}

// Answer answers the task's agent.
func (a *A2AAgents) Answer(ctx context.Context, req Request, ref TaskRef, answer map[string]any) (Task, error) {
	return a.of(req).Answer(ctx, req, ref, answer)
}

// Cancel ends the task at its agent.
func (a *A2AAgents) Cancel(ctx context.Context, req Request, ref TaskRef) error {
	return a.of(req).Cancel(ctx, req, ref)
}

// Describe returns what the endpoint of the agent says.
func (a *A2AAgents) Describe(req Request) map[string]any { return port.Describe(a.of(req), req) }

// of returns the endpoint of the request's agent, which is one that refuses if there is none.
func (a *A2AAgents) of(req Request) Tasks {
	if tasks := a.Agents[strings.TrimSpace(req.AgentID)]; tasks != nil {
		return tasks
	}
	if a.Default == nil {
		return refusal{activities.Fail(problem.DelegateAgentNotFound, "agent %q is not one of the configured A2A agents", req.AgentID)}
	}
	return a.Default
}

var _ Tasks = (*A2AAgents)(nil)
